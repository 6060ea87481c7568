"""Speed of a served agent, end to end, beside other servers on the same mock provider."""
