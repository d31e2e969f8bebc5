"""Verifies webhook posts with the official library of Standard Webhooks.

Standard input: {"secret", "posts": [{"headers", "body"}]}. Prints one line for each post: its `type`, or `bad:`
and the error.
"""
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

input_data = json.load(sys.stdin)
webhook = Webhook(input_data["secret"])
for post in input_data["posts"]:
    try:
        print(webhook.verify(post["body"], post["headers"])["type"])
    except WebhookVerificationError as error:
        print(f"bad: {error}")
