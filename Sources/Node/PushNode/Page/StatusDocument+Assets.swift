extension StatusDocument {
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
            .cluster dl{margin-top:10px;grid-template-columns:auto 1fr}
            .cluster dd{overflow-wrap:anywhere}
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
