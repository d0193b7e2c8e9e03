"""Signs requests as Web Bot Auth asks, so that a site can tell this crawler from one that only has its name.

`SigningKey` reads an Ed25519 key and never shows it. `WebBotAuth` is the `Signer` that `open_gate(signer=...)` takes: it makes
Signature-Agent, Signature-Input and Signature for one request, when that is sent. Servers verify them with the public key in the
key directory, which the operator publishes; the card says what the crawler is (both in `card.py`).

The signature's text is built by `polite.http.message_signature`. Only `key.py` loads `cryptography`, when a key is read or made.
"""
