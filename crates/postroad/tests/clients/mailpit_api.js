// Reads two messages of `postroad dev` with the Mailpit client from npm, and deletes them.
// Argument: the URL of the service.
const assert = require("node:assert");
const { MailpitClient } = require("mailpit-api");

async function main() {
  const mailpit = new MailpitClient(process.argv[2]);
  assert.strictEqual((await mailpit.getInfo()).Messages, 2);
  assert.strictEqual((await mailpit.getConfiguration()).ChaosEnabled, false);
  assert.deepStrictEqual(await mailpit.getTags(), []);

  const list = await mailpit.listMessages();
  assert.strictEqual(list.messages_count, 2);
  const both = await mailpit.waitForMessages({ count: 2, exact: true });
  assert.strictEqual(both.messages.length, 2);

  const order = await mailpit.waitForMessage({ query: 'to:ann@example.net subject:"Your order"' });
  assert.strictEqual(order.Subject, "Your order");
  assert.strictEqual(order.From.Address, "shop@unverified.example");
  assert.deepStrictEqual(order.Bcc, [{ Name: "", Address: "hidden@example.net" }]);
  assert.match(order.Text, /^Thank you/);
  assert.match(await mailpit.getMessageSource(order.ID), /^Subject: Your order\r$/m);
  const headers = await mailpit.getMessageHeaders(order.ID);
  assert.strictEqual(headers.Subject[0], "Your order");

  const latest = await mailpit.getMessageSummary();
  assert.strictEqual(latest.Subject, "Grüße");
  const file = await mailpit.getMessageAttachment(latest.ID, latest.Attachments[0].PartID);
  assert.strictEqual(await file.text(), "hallo");
  assert.match(await mailpit.renderMessageHTML(), /<b>Welt<\/b>/);
  assert.match(await mailpit.renderMessageText(order.ID), /^Thank you/);

  assert.strictEqual(await mailpit.setReadStatus({ IDs: [order.ID], Read: false }), "ok");
  assert.strictEqual((await mailpit.searchMessages({ query: "is:unread" })).messages_count, 1);
  assert.strictEqual(await mailpit.deleteMessagesBySearch({ query: "subject:order" }), "ok");
  assert.strictEqual(await mailpit.deleteMessages({ IDs: [latest.ID] }), "ok");
  assert.strictEqual((await mailpit.listMessages()).total, 0);
  await assert.rejects(mailpit.getMessageSummary(), /404/);
  assert.strictEqual(await mailpit.deleteMessages(), "ok");
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
