"""Sends a file with Python's smtplib, bare LF line ends included. Arguments: port key secret ca-file recipient file."""

import smtplib
import ssl
import sys

port, key, secret, ca_file, recipient, path = sys.argv[1:]
with smtplib.SMTP("127.0.0.1", int(port), timeout=20) as server:
    server.starttls(context=ssl.create_default_context(cafile=ca_file))
    server.login(key, secret)
    with open(path, "rb") as file:
        server.sendmail("shop@example.test", [recipient], file.read())
