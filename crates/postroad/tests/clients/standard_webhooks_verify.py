"""Verifies posts with the official library of Standard Webhooks.

Standard input: {"secret", "posts": [{"headers", "body"}]}. Prints the `type` of each post that is good.
"""
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

order = json.load(sys.stdin)
webhook = Webhook(order["secret"])
for post in order["posts"]:
    try:
        print(webhook.verify(post["body"], post["headers"])["type"])
    except WebhookVerificationError as error:
        print(f"bad: {error}")
