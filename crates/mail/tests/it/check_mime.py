"""Parses messages with Python's email package and prints what it found.

Standard input: a JSON array of base64 texts. Standard output: a JSON array with one object per message.
"""

import base64
import email
import email.policy
import json
import sys


# Intended, although this package calls them defects: non-ASCII file names in Content-Type are encoded words between
# quotes, as Outlook and Gmail write them, and non-ASCII local parts follow RFC 6531.
INTENDED = {
    "Content-Type": ["encoded word inside quoted string", "missing trailing whitespace after encoded-word"],
    "From": ["local-part contains non-ASCII characters)"],
}


def defects(message):
    for part in message.walk():
        yield from (repr(defect) for defect in part.defects)
        for name, value in part.items():
            yield from (f"{name}: {d!r}" for d in value.defects if str(d) not in INTENDED.get(name, []))


def mailboxes(message, name):
    values = message.get_all(name, [])
    return [[a.display_name, a.addr_spec] for value in values for a in value.addresses]


def structure(part):
    kind = part.get_content_type()
    return [kind, *(structure(p) for p in part.iter_parts())] if part.is_multipart() else kind


def leaf(part):
    return {
        "type": part.get_content_type(),
        "disposition": part.get_content_disposition(),
        "name": part.get_filename(),
        "cid": part["Content-ID"],
        "content": base64.b64encode(part.get_payload(decode=True)).decode(),
    }


def describe(raw):
    # From text, not bytes: that is how this package takes headers in UTF-8 (RFC 6532).
    message = email.message_from_string(raw.decode(), policy=email.policy.default)
    plain, html = (message.get_body([kind]) for kind in ("plain", "html"))
    return {
        "defects": list(defects(message)),
        "longest_line": max(len(line) for line in raw.split(b"\r\n")),
        "subject": message["Subject"],
        "from": mailboxes(message, "From"),
        "sender": mailboxes(message, "Sender"),
        "reply_to": mailboxes(message, "Reply-To"),
        "to": mailboxes(message, "To"),
        "cc": mailboxes(message, "Cc"),
        "date": message["Date"].datetime.isoformat(),
        "message_id": message["Message-ID"],
        "custom": [[name, value] for name, value in message.items() if name.startswith("X-")],
        "structure": structure(message),
        "plain": plain and plain.get_content(),
        "html": html and html.get_content(),
        "leaves": [leaf(part) for part in message.walk() if not part.is_multipart()],
    }


json.dump([describe(base64.b64decode(text)) for text in json.load(sys.stdin)], sys.stdout)
