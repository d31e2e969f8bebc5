// Sends one message with nodemailer. Arguments: host port tls|starttls mechanism key secret ca-file recipients.
const { readFileSync } = require("node:fs");
const nodemailer = require("nodemailer");

const [host, port, listener, mechanism, user, pass, caFile, recipients] = process.argv.slice(2);
const transport = nodemailer.createTransport({
  host,
  port: Number(port),
  secure: listener === "tls",
  requireTLS: true,
  auth: { user, pass },
  authMethod: mechanism,
  tls: { ca: readFileSync(caFile) },
});
transport
  .sendMail({
    envelope: { from: "shop@example.test", to: recipients.split(",") },
    from: "Shop <shop@example.test>",
    to: "somebody@else.example",
    subject: "Grüße von nodemailer",
    text: "A text with ümlauts.\n.\n..and dots\n",
    html: "<p>A text</p>",
  })
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
