"""What providers say when they refuse, and what kind of error that is (spec/04 §9, M-073)."""

from typing import Any

import pytest

from thinkwell.core.errors import ConfigurationError, ModelError
from thinkwell.errors import default_context_overflow_classifier, default_error_classifier

SAMPLES = [
    # provider, status, what it said, kind
    ("openai", 400, "This model's maximum context length is 128000 tokens.", "context_overflow"),
    ("openai", 400, '{"code":"context_length_exceeded"}', "context_overflow"),
    ("openai", None, "Your input exceeds the context window of this model.", "context_overflow"),
    ("openai", 429, "You exceeded your current quota, please check your plan", "quota"),
    ("openai", 429, '{"code":"insufficient_quota"}', "quota"),
    ("openai", 429, "Rate limit reached for gpt-5 in organization org-1", "rate_limit"),
    ("openai", 401, "Incorrect API key provided: sk-1***.", "auth"),
    ("openai", 404, "The model `gpt-9` does not exist", "invalid_request"),
    ("openai", 500, "The server had an error while processing your request", "transient"),
    ("openai", 400, "Invalid schema for function 'search'", "invalid_request"),
    (
        "azure",
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's "
        "content management policy.",
        "content_filter",
    ),
    ("anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum", "context_overflow"),
    ("anthropic", 400, "input length and `max_tokens` exceed context limit", "context_overflow"),
    ("anthropic", 413, '{"error":{"type":"request_too_large"}}', "context_overflow"),
    ("anthropic", 529, '{"error":{"type":"overloaded_error"}}', "transient"),
    ("anthropic", 429, '{"error":{"type":"rate_limit_error"}}', "rate_limit"),
    ("anthropic", 400, "Your credit balance is too low to access the API.", "quota"),
    ("anthropic", 401, '{"error":{"type":"authentication_error"}}', "auth"),
    ("anthropic", 403, '{"error":{"type":"permission_error"}}', "auth"),
    ("google", 400, "The input token count (1200000) exceeds the maximum", "context_overflow"),
    ("google", 429, "RESOURCE_EXHAUSTED", "rate_limit"),
    ("google", 503, "The model is overloaded. Please try again later.", "transient"),
    ("bedrock", 400, "Input is too long for requested model.", "context_overflow"),
    ("bedrock", 429, "Too many requests, please wait before trying again.", "rate_limit"),
    ("mistral", 400, "Prompt contains 40000 tokens, too many tokens", "context_overflow"),
    ("groq", 413, "Request too large for model", "context_overflow"),
    ("groq", 400, "Please reduce the length of the messages or completion.", "context_overflow"),
    ("xai", 400, "This model's maximum prompt length is 131072", "context_overflow"),
    ("deepseek", 402, "Insufficient Balance", "quota"),
    ("openrouter", 402, "This request requires more credits, or fewer max_tokens.", "quota"),
    ("llama.cpp", 400, "the request exceeds the available context size", "context_overflow"),
    ("vllm", 400, "maximum context length is 4096 tokens", "context_overflow"),
    ("any", 408, "took too long", "transient"),
    ("any", 418, "I am a teapot", "unknown"),
]


def model_error(status: int | None, text: str, **fields: Any) -> ModelError:
    retryable = status is not None and (status in (408, 409, 429) or status >= 500)
    return ModelError("refused", status=status, body=text, retryable=retryable, **fields)


@pytest.mark.parametrize(("provider", "status", "text", "kind"), SAMPLES)
def test_what_providers_say(provider: str, status: int | None, text: str, kind: str):
    assert default_error_classifier(model_error(status, text)) == kind
    overflow = default_context_overflow_classifier(model_error(status, text))
    assert (overflow == "context_overflow") == (kind == "context_overflow")


def test_a_provider_says_it_in_its_code():
    assert default_error_classifier(model_error(400, "", code="context_length_exceeded")) == (
        "context_overflow"
    )


def test_what_another_library_wrapped_is_found():
    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = ValueError("prompt is too long: 5 > 4")
    assert default_error_classifier(wrapped) == "context_overflow"


def test_a_circle_of_causes_ends():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert default_error_classifier(first) == "unknown"


def test_a_connection_that_was_lost_is_transient():
    assert default_error_classifier(ModelError("gone", cut=True)) == "transient"


def test_a_word_does_not_make_a_final_refusal_passing():
    refused = model_error(400, "Unknown parameter 'rate_limit'. Do not try again.")
    assert default_error_classifier(refused) == "invalid_request"


def test_a_mistake_in_the_program_is_fatal():
    assert default_error_classifier(ConfigurationError("no key")) == "fatal"


def test_everything_else_is_unknown():
    assert default_error_classifier(ValueError("odd")) == "unknown"
