extension PageDocument {
    static let style = HTML(
        trusted: """
            :root{--back:#f4f5f7;--card:#fff;--text:#1c2128;--quiet:#626b77;--rule:#e1e4e8;--good:#157f3c;--goodback:#e3f5e8;--warn:#8a5a00;--warnback:#fdf1d8;\
            --bad:#c1272d;--badback:#fde8e8;--one:#2563eb;--two:#0d9488;--three:#c2570c}
            @media(prefers-color-scheme:dark){:root{--back:#0e1116;--card:#171b22;--text:#e4e8ee;--quiet:#949eab;--rule:#2a303a;--good:#4ade80;--goodback:#11301d;\
            --warn:#fbbf24;--warnback:#33270c;--bad:#ff8080;--badback:#3b1719;--one:#6ea3ff;--two:#2dd4bf;--three:#fb923c}}
            *{box-sizing:border-box}
            html{background:var(--back);color:var(--text);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;\
            font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}
            body{margin:0 auto;max-width:1240px;padding:18px 20px 32px}
            header{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 18px;margin-bottom:14px}
            h1{font-size:20px;letter-spacing:-.01em;margin:0}
            h2{font-size:12.5px;font-weight:600;margin:0 0 10px;color:var(--quiet);letter-spacing:.02em}
            h2 small,figcaption small{font-weight:400;color:var(--quiet);font-size:12px;margin-left:6px}
            header p{margin:0;color:var(--quiet);font-size:13px}
            #connection{flex-basis:100%;background:var(--badback);color:var(--bad);padding:8px 12px;border-radius:8px;font-weight:600}
            section,figure{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:14px 16px;margin:0;min-width:0}
            main{display:grid;gap:14px}
            .health{display:flex;flex-wrap:wrap;align-items:center;gap:4px 20px;border-width:0 0 0 6px;border-radius:10px;padding:16px 20px}
            .health h2{font-size:24px;line-height:1.2;letter-spacing:-.01em;margin:0;color:inherit}
            .health ul{margin:0;padding:0;list-style:none;color:var(--text);flex:1 1 320px;overflow-wrap:anywhere}
            .health.good{background:var(--goodback);color:var(--good);border-color:var(--good)}
            .health.warn{background:var(--warnback);color:var(--warn);border-color:var(--warn)}
            .health.bad{background:var(--badback);color:var(--bad);border-color:var(--bad)}
            .flow ol{display:grid;grid-template-columns:repeat(5,1fr);list-style:none;margin:0;padding:0}
            .flow ol.second{grid-template-columns:1fr 1fr 3fr;border-top:1px solid var(--rule);margin-top:12px;padding-top:12px}
            .flow li{position:relative;padding:0 18px 0 0;min-width:0}
            .flow li:not(:last-child)::after{content:"";position:absolute;right:16px;top:26px;width:9px;height:9px;border:solid var(--quiet);\
            border-width:2px 2px 0 0;transform:rotate(45deg);opacity:.55}
            .flow .second li:nth-child(2)::after{display:none}
            .flow li span,.flow li i{display:block;font-size:12.5px;color:var(--quiet);font-style:normal}
            .flow li b{display:block;font-size:26px;line-height:1.25;font-weight:650;letter-spacing:-.02em}
            .hint{margin:10px 0 0;font-size:12.5px;color:var(--quiet)}
            .cluster dl{margin-top:10px}
            .cluster dl,.protocol dl{grid-template-columns:auto 1fr}
            .cluster dd,.protocol dd{overflow-wrap:anywhere}
            .cards{display:grid;grid-template-columns:repeat(4,1fr);gap:14px}
            .state{font-size:19px;font-weight:650;margin:0 0 8px;letter-spacing:-.01em}
            .state.good::before,.state.bad::before{content:"";display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:8px;background:currentColor}
            .state.good::before{color:var(--good)}
            .state.bad{color:var(--bad)}
            .note{margin:-4px 0 8px;font-size:12.5px;color:var(--bad);overflow-wrap:anywhere}
            dl{display:grid;grid-template-columns:1fr auto;gap:2px 12px;margin:0;font-size:13.5px}
            dt{color:var(--quiet)}
            dd{margin:0;text-align:right;font-weight:550}
            .bar{display:block;width:100%;height:8px;border-radius:4px;background:var(--rule);margin:0 0 10px}
            .dot{width:9px;height:9px;margin-right:6px}
            .line1{fill:var(--one)}.line2{fill:var(--two)}.line3{fill:var(--three)}
            .stroke1{stroke:var(--one)}.stroke2{stroke:var(--two)}.stroke3{stroke:var(--three)}
            .area1{fill:var(--one);opacity:.12}
            .charts{display:grid;grid-template-columns:1fr 1fr;gap:14px}
            figcaption{font-weight:600;font-size:14px;margin-bottom:8px}
            .plot{position:relative}
            .plot svg{display:block;width:100%;height:120px}
            .plot polyline{fill:none;stroke-width:1.75;vector-effect:non-scaling-stroke;stroke-linejoin:round}
            .grid{stroke:var(--rule);stroke-width:1;vector-effect:non-scaling-stroke;fill:none}
            .top{position:absolute;left:0;top:2px;font-size:11px;color:var(--quiet);background:var(--card);padding:0 6px 0 0;line-height:1.2}
            .cross{stroke:var(--quiet);stroke-width:1;stroke-dasharray:3 3;vector-effect:non-scaling-stroke}
            .axis{display:flex;justify-content:space-between;font-size:11.5px;color:var(--quiet);margin:4px 0 6px}
            .reading{color:var(--text);font-weight:600}
            .legend{display:flex;flex-wrap:wrap;gap:2px 16px;list-style:none;margin:0;padding:0;font-size:13px;color:var(--quiet)}
            .legend b{color:var(--text);font-weight:600}
            .columns{display:grid;grid-template-columns:1fr 1fr;gap:14px;align-items:start}
            table{border-collapse:collapse;width:100%;font-size:13.5px}
            th{font-weight:500;color:var(--quiet);text-align:left;font-size:12px;padding:0 0 4px}
            td{border-top:1px solid var(--rule);padding:6px 0;vertical-align:top;overflow-wrap:anywhere}
            th.number,td.number{text-align:right;padding-left:14px;white-space:nowrap}
            td span{color:var(--quiet);font-size:12.5px}
            tr.fresh td.number:nth-child(2){font-weight:650}
            tr.old{color:var(--quiet)}
            tr.old b{font-weight:500}
            em{font-style:normal;font-size:11px;font-weight:650;color:var(--bad);background:var(--badback);border-radius:6px;padding:1px 7px;margin-left:4px}
            .none{margin:0;color:var(--quiet)}
            .health li span{font-size:12.5px;color:var(--quiet)}
            .health a{color:inherit}
            form{display:flex;gap:8px}
            input{flex:1;min-width:0;font:inherit;font-size:13.5px;color:inherit;background:var(--back);border:1px solid var(--rule);border-radius:8px;padding:7px 10px}
            button{font:inherit;font-size:13.5px;font-weight:600;color:var(--card);background:var(--one);border:0;border-radius:8px;padding:7px 14px}
            #found:not(:empty){grid-template-columns:auto 1fr;margin-top:10px}
            #found dd{overflow-wrap:anywhere}
            footer{margin-top:18px;font-size:12.5px;color:var(--quiet)}
            a{color:var(--one)}
            @media(max-width:900px){.cards{grid-template-columns:1fr 1fr}.charts,.columns{grid-template-columns:1fr}}
            @media(max-width:560px){body{padding:12px 12px 24px}.cards{grid-template-columns:1fr}.health{padding:14px 16px}.health h2{font-size:21px}\
            .flow ol{grid-template-columns:1fr}.flow ol.second{grid-template-columns:1fr}\
            .flow li{display:grid;grid-template-columns:1fr auto;align-items:baseline;padding:5px 0}.flow li i{grid-column:1/3;text-align:right;margin-top:-3px}\
            .flow li:not(:last-child)::after{display:none}.flow li span{font-size:14px;color:var(--text)}.flow li b{font-size:20px}}

            """)

    static let script = HTML(
        trusted: """
            "use strict";
            (() => {
              const pause = 2000;
              let charts = null, pointer = null;
              const number = value => value >= 100 ? Math.round(value).toString() : (Math.round(value * 10) / 10).toString();

              // The node renders the page: parts that differ are replaced.
              function replace(fresh) {
                document.title = fresh.title;
                for (const part of fresh.querySelectorAll("[data-live]")) {
                  const old = document.querySelector('[data-live="' + part.dataset.live + '"]');
                  if (old && old.outerHTML !== part.outerHTML) old.replaceWith(document.importNode(part, true));
                }
              }

              function read() {
                for (const mark of document.querySelectorAll(".cross")) mark.remove();
                for (const text of document.querySelectorAll(".reading")) text.textContent = "";
                if (!pointer || !charts || charts.times.length < 2) return;
                const figure = document.querySelector('figure[data-live="' + pointer.chart + '"]');
                const chart = charts.lines[Number(pointer.chart.slice(5))];
                const times = charts.times, span = times[times.length - 1] - times[0];
                let nearest = 0;
                times.forEach((time, index) => {
                  if (Math.abs((time - times[0]) / span - pointer.share) < Math.abs((times[nearest] - times[0]) / span - pointer.share)) nearest = index;
                });
                const plot = figure.querySelector(".plot svg");
                const cross = document.createElementNS(plot.namespaceURI, "line");
                const x = (times[nearest] - times[0]) / span * 600;
                for (const [name, value] of [["class", "cross"], ["x1", x], ["x2", x], ["y1", 0], ["y2", 120]]) cross.setAttribute(name, value);
                plot.append(cross);
                figure.querySelector(".reading").textContent = new Date(times[nearest] * 1000).toISOString().slice(11, 19) + "  "
                  + chart.lines.map(line => line.name + " " + number(line.values[nearest])).join(", ");
              }

              document.addEventListener("pointermove", event => {
                const plot = event.target.closest ? event.target.closest(".plot") : null;
                const box = plot ? plot.getBoundingClientRect() : null;
                pointer = plot ? { chart: plot.closest("figure").dataset.live, share: (event.clientX - box.left) / box.width } : null;
                read();
              });

              // SHAKE-256 and SHA3-256 of up to 135 bytes: one block of 136 bytes.
              function keccak(bytes, suffix, length) {
                const mask = (1n << 64n) - 1n, lanes = new Array(25).fill(0n), block = new Uint8Array(136);
                const rotate = (lane, count) => count ? ((lane << BigInt(count)) | (lane >> BigInt(64 - count))) & mask : lane;
                block.set(bytes);
                block[bytes.length] ^= suffix;
                block[135] ^= 0x80;
                block.forEach((byte, index) => { lanes[index >> 3] |= BigInt(byte) << BigInt(8 * (index & 7)); });
                for (let round = 0, feedback = 1; round < 24; round++) {
                  const parity = [0, 1, 2, 3, 4].map(x => lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]);
                  for (let index = 0; index < 25; index++) lanes[index] ^= parity[(index + 4) % 5] ^ rotate(parity[(index + 1) % 5], 1);
                  for (let step = 0, x = 1, y = 0, moved = lanes[1]; step < 24; step++) {
                    [x, y] = [y, (2 * x + 3 * y) % 5];
                    const next = lanes[x + 5 * y];
                    lanes[x + 5 * y] = rotate(moved, ((step + 1) * (step + 2) / 2) % 64);
                    moved = next;
                  }
                  for (let y = 0; y < 25; y += 5) {
                    const row = lanes.slice(y, y + 5);
                    for (let x = 0; x < 5; x++) lanes[y + x] = row[x] ^ (~row[(x + 1) % 5] & mask & row[(x + 2) % 5]);
                  }
                  for (let bit = 0; bit < 7; bit++) {
                    feedback = ((feedback << 1) ^ ((feedback >> 7) * 0x71)) % 256;
                    if (feedback & 2) lanes[0] ^= 1n << BigInt((1 << bit) - 1);
                  }
                }
                return Array.from({ length }, (_, index) => Number((lanes[index >> 3] >> BigInt(8 * (index & 7))) & 255n).toString(16).padStart(2, "0")).join("");
              }

              // The question about a public key has its hashes only. Throws for text that is neither a key nor a hash nor a notif_id.
              function question(text) {
                const wanted = text.trim().toLowerCase().replace(/^0x/, "");
                if (/^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.test(wanted)) {
                  return { body: { notification: wanted }, command: "waku-push admin trace " + wanted };
                }
                let hashes = null;
                if (/^(04[0-9a-f]{128}|0[23][0-9a-f]{64})$/.test(wanted)) {
                  const isOdd = parseInt(wanted.slice(-1), 16) % 2;
                  const short = wanted.length === 66 ? wanted : (isOdd ? "03" : "02") + wanted.slice(2, 66);
                  const bytes = Uint8Array.from(short.match(/../g), digits => parseInt(digits, 16));
                  hashes = [keccak(bytes, 0x1f, 64), keccak(bytes, 0x06, 32)];
                } else if (/^([0-9a-f]{64}|[0-9a-f]{128})$/.test(wanted)) {
                  hashes = [wanted];
                }
                if (!hashes) throw new Error("This is neither a public key nor a key hash nor a notif_id.");
                return { body: { registrant: hashes }, command: "waku-push admin registrations show " + hashes[0].slice(0, 16) };
              }

              async function search(text) {
                const { body, command } = question(text);
                const answer = await fetch("search", { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
                if (!answer.ok) throw new Error(await answer.text());
                const lines = (await answer.json()).lines;
                const nothing = body.registrant ? "no device is registered"
                  : "nothing: it was accepted more than 24 hours ago, was dropped, or is not from this node";
                return (lines.length ? lines : [{ name: "stored", value: nothing }]).concat([{ name: "details", value: command }]);
              }

              document.getElementById("search").hidden = false;
              document.querySelector("#search form").addEventListener("submit", async event => {
                event.preventDefault();
                let lines;
                try { lines = await search(document.getElementById("wanted").value); } catch (error) {
                  lines = [{ name: "error", value: error.message }];
                }
                document.getElementById("found").replaceChildren(...lines.flatMap(line => ["name", "value"].map((part, index) => {
                  const element = document.createElement(index ? "dd" : "dt");
                  element.textContent = line[part];
                  return element;
                })));
              });

              async function update() {
                try {
                  const [page, status] = await Promise.all([fetch("./", { cache: "no-store" }), fetch("status.json", { cache: "no-store" })]);
                  if (!page.ok || !status.ok) throw new Error("no answer");
                  const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
                  charts = (await status.json()).charts;
                  replace(fresh);
                  read();
                  document.getElementById("connection").hidden = true;
                  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
                } catch {
                  document.getElementById("connection").hidden = false;
                }
                setTimeout(update, pause);
              }
              update();
            })();

            """)
}
