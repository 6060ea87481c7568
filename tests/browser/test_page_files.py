"""Files in a message: dropped, pasted, picked, removed, refused."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.browser.page_support import ChatPage, chatting

pytestmark = pytest.mark.browser

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlE"
    "QVR4nGNgYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
HAND_OVER = """([kind, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], "dot.png", { type: "image/png" }));
  const field = document.querySelector("textarea[aria-label=Message]");
  const options = { bubbles: true, cancelable: true };
  if (kind === "paste") {
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, ...options }));
  } else {
    field.dispatchEvent(new DragEvent("dragover", { dataTransfer: files, ...options }));
    field.dispatchEvent(new DragEvent("drop", { dataTransfer: files, ...options }));
  }
}"""
NOISE = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 900;
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(900, 900);
  for (let at = 0; at < pixels.data.length; at += 65536)
    crypto.getRandomValues(pixels.data.subarray(at, at + 65536));
  for (let at = 3; at < pixels.data.length; at += 4) pixels.data[at] = 255;
  pen.putImageData(pixels, 0, 0);
  return canvas.toDataURL("image/png").split(",")[1];
}"""


@pytest.fixture
async def chat(page: Page) -> AsyncIterator[ChatPage]:
    async with chatting(page) as chat:
        yield chat


async def pick(chat: ChatPage, name: str, kind: str, body: bytes) -> None:
    file = FilePayload(name=name, mimeType=kind, buffer=body)
    await chat.page.locator("input[type=file]").set_input_files([file])


@pytest.mark.parametrize("kind", ["drop", "paste"])
async def test_an_image_is_attached_sent_and_kept(chat: ChatPage, kind: str):
    await chat.page.evaluate(HAND_OVER, [kind, DOT])
    attached = chat.page.get_by_role("group", name="Attached files")
    await expect(attached.get_by_alt_text("dot.png")).to_be_visible()
    chat.model.add("A dot.")
    await chat.say("what is it?")
    await expect(chat.page.get_by_text("A dot.")).to_be_visible()
    await chat.settled()
    await expect(attached).to_have_count(0)
    sent = chat.model.requests[-1].messages[-1]
    assert "image/png" in repr(sent)
    await chat.page.reload()
    picture = chat.asked.get_by_alt_text("dot.png")
    await expect(picture).to_have_attribute("src", f"data:image/png;base64,{DOT}")


async def test_a_picked_file_can_be_removed_again(chat: ChatPage):
    await pick(chat, "notes.txt", "text/plain", b"remember the milk")
    await chat.button("Remove notes.txt").click()
    await expect(chat.page.get_by_role("group", name="Attached files")).to_have_count(0)
    await expect(chat.button("Send")).to_be_disabled()


async def test_a_file_that_is_too_big_is_refused_with_a_reason(chat: ChatPage):
    await pick(chat, "long.txt", "text/plain", b"x" * 2_000_000)
    alert = chat.page.get_by_role("alert")
    await expect(alert).to_contain_text("long.txt (2.0 MB) is too big")
    await chat.button("Dismiss the problem").click()
    await expect(alert).to_have_count(0)


async def test_a_file_of_a_strange_kind_is_refused_with_a_reason(chat: ChatPage):
    await pick(chat, "tool.exe", "application/x-msdownload", b"MZ")
    await expect(chat.page.get_by_role("alert")).to_contain_text("tool.exe is not an image")


async def test_a_big_photo_is_made_smaller(chat: ChatPage):
    noise = base64.b64decode(await chat.page.evaluate(NOISE))
    await pick(chat, "photo.png", "image/png", noise)
    picture = chat.page.get_by_role("group", name="Attached files").get_by_alt_text("photo.png")
    await expect(picture).to_be_visible()
    source = await picture.get_attribute("src")
    assert source is not None
    assert source.startswith("data:image/jpeg")
    assert len(source) < 1_600_000 < len(noise)
