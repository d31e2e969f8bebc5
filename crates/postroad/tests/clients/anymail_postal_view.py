"""Hands webhook posts to django-anymail's Postal webhook view, as a Django application would.

Standard input: {"key", "posts": [{"headers", "body"}]}. Prints one JSON line for each: HTTP status and events.
"""
import json
import sys

from django.conf import settings

settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="test", ANYMAIL={})
import django

django.setup()
from anymail.signals import tracking
from anymail.webhooks.postal import PostalTrackingWebhookView
from django.core.exceptions import SuspiciousOperation
from django.test import RequestFactory

seen = []


def collect_event(sender, event, esp_name, **kwargs):
    seen.append(event)


tracking.connect(collect_event)
input_data = json.load(sys.stdin)
view = PostalTrackingWebhookView.as_view(webhook_key=input_data["key"])
for post in input_data["posts"]:
    headers = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in post["headers"].items()}
    request = RequestFactory().post("/", post["body"], content_type="application/json", **headers)
    seen.clear()
    try:
        status = view(request).status_code
    except SuspiciousOperation:
        status = 400
    events = [
        {"type": event.event_type, "recipient": event.recipient, "id": event.event_id, "url": event.click_url}
        for event in seen
    ]
    print(json.dumps({"status": status, "events": events}))
