// Does what pages do, writes into the page what it saw, and reports the page.
const sum = (bytes) => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte) >>> 0, 7);

async function got(url, options) {
  const answer = await fetch(url, options);
  const body = new Uint8Array(await answer.arrayBuffer());
  const fields = ["content-type", "content-range", "etag", "cache-control"].map((name) => answer.headers.get(name));
  return `${url} ${answer.status} ${answer.redirected} ${fields.join(" ")} ${body.length} ${sum(body)}`;
}

function seen(image) {
  if (image.naturalWidth === 0) return `${image.alt}: broken`;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  return `${image.alt}: ${canvas.width} x ${canvas.height}, ${sum(pixels)}`;
}

// A form that is sent as users send it.
function posted() {
  const frame = document.querySelector("iframe");
  return new Promise((done) => {
    frame.onload = () => done(frame.contentDocument.body.textContent);
    document.getElementById("form").submit();
  });
}

// Loads a sound and seeks near its end.
function heard() {
  return new Promise((done) => {
    const sound = new Audio("/tone.wav");
    sound.onerror = () => done(`no sound: ${sound.error.message}`);
    sound.onloadedmetadata = () => { sound.currentTime = 220; };
    sound.onseeked = () => done(`sound of ${sound.duration} s, at ${sound.currentTime} s`);
  });
}

async function look() {
  const lines = [...document.images].map(seen);
  const style = getComputedStyle(document.getElementById("box"));
  lines.push(`box: ${style.width} ${style.height} ${style.color}`);
  lines.push(await posted());
  lines.push(await got("/style.css", { cache: "no-cache" }));
  lines.push(await got("/script.js", { cache: "reload" }));
  lines.push(await got("/large"));
  lines.push(await got("/large", { headers: { Range: "bytes=1000-1999" }, cache: "no-store" }));
  lines.push(await got("/moved.bmp"));
  lines.push(await got("/parts"));
  lines.push(await got("/now"));
  lines.push(await got("/now"));
  lines.push(await got("/fails"));
  lines.push(await got("/login"));
  lines.push(await got("/private"));
  lines.push(await got("/echo", { method: "PUT", body: new Uint8Array(100000).fill(65) }));
  lines.push(await got("/echo", { method: "DELETE" }));
  const many = Array.from({ length: 12 }, (_, number) => got(`/missing-${number}`));
  lines.push(...await Promise.all(many));
  lines.push(`cookies: ${document.cookie}`);
  lines.push(await heard());
  const text = document.createElement("pre");
  text.textContent = lines.join("\n");
  document.body.append(text);
}

addEventListener("load", async () => {
  await look().catch((error) => document.body.append(`error: ${error}`));
  await fetch("/report", { method: "POST", body: document.documentElement.outerHTML });
});
