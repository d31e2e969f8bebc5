"""Sends a message with Python's smtplib. Arguments: host port tls|starttls mechanism key secret ca-file recipients."""

import smtplib
import ssl
import sys
from email.message import EmailMessage

host, port, listener, mechanism, key, secret, ca_file, recipients = sys.argv[1:]
context = ssl.create_default_context(cafile=ca_file)
if listener == "tls":
    server = smtplib.SMTP_SSL(host, int(port), context=context, timeout=20)
else:
    server = smtplib.SMTP(host, int(port), timeout=20)
    server.starttls(context=context)
server.ehlo()
server.user, server.password = key, secret
method = {"PLAIN": server.auth_plain, "LOGIN": server.auth_login}[mechanism]
server.auth(mechanism, method, initial_response_ok=listener == "tls")

message = EmailMessage()
message["From"] = "Shop <shop@example.test>"
message["To"] = "somebody@else.example"
message["Subject"] = "Grüße von smtplib"
message.set_content("A text with ümlauts.\n.\n..and dots\n")
message.add_alternative("<p>A text</p>", subtype="html")
server.send_message(message, "shop@example.test", recipients.split(","))
server.quit()
