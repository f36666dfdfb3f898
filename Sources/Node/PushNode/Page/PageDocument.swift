import Foundation
import NodeMetrics
import Core
import NodeAPI
import WakuCrypto

/// The page at `/`: one self-contained document, which is complete without JavaScript. With JavaScript, sections marked `data-live` are updated,
/// and the charts show values under the pointer, from `/status.json`.
package struct PageDocument {
    let status: PageFigures

    package var text: String { document.text }

    /// Allows nothing from other origins, and inline only the page's own style and script.
    package static let contentSecurityPolicy: String = {
        func source(_ text: String) -> String { "'sha256-\(Data(SHA256.hash(Array(text.utf8))).base64EncodedString())'" }
        return "default-src 'none'; style-src \(source(style.text)); script-src \(source(script.text)); connect-src 'self'; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }()

    var document: HTML {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <noscript><meta http-equiv="refresh" content="10"></noscript>
        <title>\(status.isReady ? "ready" : "NOT READY") – waku-push</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        <header>
        <h1>waku-push</h1>
        <p data-live="clock">as of <time>\(status.time.clock)</time> UTC, up \(status.uptime.inWords)</p>
        <p id="connection" hidden>The node does not answer. These figures are outdated.</p>
        </header>
        <main>
        \(health)
        \(flow)
        <div class="cards">
        \(relay)
        \(gorush)
        \(registrations)
        \(store)
        </div>
        \(cluster)
        <div class="columns">
        \(protocols)
        </div>
        <div class="charts">
        \(charts)
        </div>
        <div class="columns">
        \(alarms)
        \(losses)
        \(errors)
        \(Self.search)
        </div>
        </main>
        <footer>Figures for programs: <a href="metrics">metrics</a>, <a href="status.json">status.json</a>, <a href="readyz">readyz</a></footer>
        <script>\(Self.script)</script>
        </body>
        </html>

        """
    }

    // MARK: Health

    private var health: HTML {
        let warnings = status.alarms.filter { $0.isActive(at: status.time) }
        guard status.isReady else {
            let obstacles: [HTML] = status.obstacles.map { obstacle in
                "<li>\(obstacle.text)\(obstacle.remedy.map { ["<br><span>\($0)</span>"] } ?? [])</li>"
            }
            return """
                <section class="health bad" data-live="health"><h2>Not ready</h2>
                <ul>\(obstacles)</ul></section>
                """
        }
        guard warnings.isEmpty else {
            let alarms: [HTML] = warnings.map { "<li>\($0.kind.title): \($0.reason)<br><span>\(article(about: $0.kind))</span></li>" }
            return """
                <section class="health warn" data-live="health"><h2>Working, with warnings</h2>
                <ul>\(alarms)</ul></section>
                """
        }
        return """
            <section class="health good" data-live="health"><h2>Healthy</h2>
            <ul><li>\(success)</li></ul></section>
            """
    }

    /// The parts that work, or that a new node waits for.
    private var success: HTML {
        let gorush: HTML = status.hasGorush ? ", gorush is available" : ""
        if status.hasRelay, hasNoMessage {
            return "The relay is attached, the database works\(gorush). No message has come in yet"
        }
        let works: HTML = status.hasRelay ? "Messages come in, the database keeps them\(gorush)" : "The database works\(gorush)"
        guard let figures = status.registrations, figures.total == 0 else { return works }
        // Clients of protocols over HTTP don't need the identity's key.
        let advice: HTML = status.hasRelay ? ": clients need the public key, see waku-push identity show" : ""
        return "\(works)<br><span>no device is registered\(advice)</span>"
    }

    private var hasNoMessage: Bool { status.messages.first.map { $0.total == 0 } ?? false }

    // MARK: Flow

    private var flow: HTML {
        """
        <section class="flow" data-live="flow">
        <h2>Messages and notifications <small>last \(status.lately)</small></h2>
        <ol>\(steps(status.messages))</ol>
        <p class="hint">\(flowNote)</p>
        <ol class="second">\(steps(status.notifications))<li class="time"><span>Work until the answer</span><b>\(answerTime)</b><i>\(mostTime)\(heldTime)</i></li></ol>
        </section>
        """
    }

    private func steps(_ steps: [PageFigures.Step]) -> [HTML] {
        steps.map { step in
            "<li><span>\(step.name)</span><b>\(step.lately.grouped)</b><i>\(step.total.grouped) since the start</i></li>"
        }
    }

    private var answerTime: String { status.answerTimes.map { "\($0.half.asTime)" } ?? "–" }
    /// Why a figure may be lower than the one before it.
    private var flowNote: String {
        let elsewhere = status.elsewhere.map {
            ", and \($0.lately.grouped) that other nodes handled (\($0.total.grouped) since the start)"
        }
        return
            "Topics of this identity carry more than requests to this node: answers, parts of longer messages, messages for other servers"
            + (elsewhere ?? "") + ". A lower figure is not a loss: losses are counted below."
            + (elsewhere == nil
                ? "" : " Each node queues notifications of the requests that it handled, and posts those to the devices of its partitions.")
    }

    /// Answers are late on purpose, so that phones hear them: not part of the work.
    private var heldTime: String {
        status.replyDelay > .zero
            ? "; answers leave no earlier than \(status.replyDelay.seconds.asTime) after the receipt (--reply-delay)"
            : ""
    }

    private var mostTime: String { status.answerTimes.map { "99 of 100 within \($0.most.asTime)" } ?? "no recent answers" }

    // MARK: Parts

    private func card(_ id: String, title: String, state: HTML, isWell: Bool, rows: [(String, HTML)], note: String? = nil) -> HTML {
        """
        <section class="card" data-live="\(id)"><h2>\(title)</h2>
        <p class="state \(isWell ? "good" : "bad")">\(state)</p>\(note.map { ["<p class=\"note\">\($0)</p>"] } ?? [])
        <dl>\(rows.map { "<dt>\($0.0)</dt><dd>\($0.1)</dd>" as HTML })</dl></section>
        """
    }

    private var relay: HTML {
        guard status.hasRelay else {
            return card(
                "relay", title: "Relay", state: "none", isWell: true, rows: [("reason", "protocols over HTTP need none")], note: nil)
        }
        let isWell = status.relayObstacle == nil && !status.isSilent
        let state: HTML = status.relayObstacle != nil ? "detached" : status.isSilent ? "silent" : "attached"
        return card(
            "relay", title: "Relay", state: state, isWell: isWell,
            rows: [
                ("last message", hasNoMessage ? "none yet" : "\(status.silence.inWords) ago"), ("gaps", "\(status.gaps.grouped)"),
                ("found only in its store", "\(status.recovered.grouped)"),
            ], note: status.relayObstacle)
    }

    private var gorush: HTML {
        let state: HTML =
            switch status.breaker {
            case .closed where !status.hasGorush: "none"
            case .closed where status.gorushFailure != nil: "fails"
            case .closed: status.gorushDelay == nil ? "available" : "slow"
            case .open: "given up"
            case .halfOpen: "being tried again"
            }
        return card(
            "gorush", title: "gorush", state: state,
            isWell: status.breaker == .closed && status.gorushFailure == nil && status.gorushDelay == nil,
            rows: [("waiting", "\(status.waiting.grouped)"), ("oldest", "\(status.oldestWaiting?.inWords ?? "–")")]
                + status.endpoints.map { endpoint in
                    ("\(endpoint.name)", "\(endpoint.breaker == "closed" ? "" : "given up, ")\(endpoint.waiting.grouped) wait")
                }
                + status.posts.dropFirst().map { step in (step.name.lowercased(), "\(step.lately.grouped)") },
            note: status.gorushFailure ?? status.gorushDelay)
    }

    private var registrations: HTML {
        guard let figures = status.registrations else {
            return card("registrations", title: "Registrations", state: "can't be read", isWell: false, rows: [])
        }
        let total = figures.total
        // Each bar lies on the one before; the rest, in the color of the background, are those of Huawei.
        let (three, two, one) = (total - figures.huawei, figures.apn + figures.firebase, figures.apn)
        func width(_ count: Int) -> Int { total > 0 ? 1000 * count / total : 0 }
        let bar: HTML = """
            <svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="line3" width="\(width(three))" height="10"/>\
            <rect class="line2" width="\(width(two))" height="10"/><rect class="line1" width="\(width(one))" height="10"/></svg>
            """
        let huawei: HTML = "<dt>Huawei</dt><dd>\(figures.huawei.grouped)</dd>"
        let webPush: HTML = """
            <dt><svg class="dot" viewBox="0 0 10 10"><circle class="line3" cx="5" cy="5" r="5"/></svg>Web Push</dt><dd>\(figures.webPush.grouped)</dd>
            """
        return """
            <section class="card" data-live="registrations"><h2>Registrations</h2>
            <p class="state">\(total.grouped) \(total == 1 ? "device" : "devices")</p>\(bar)
            <dl><dt><svg class="dot" viewBox="0 0 10 10"><circle class="line1" cx="5" cy="5" r="5"/></svg>Apple</dt><dd>\(figures.apn.grouped)</dd>
            <dt><svg class="dot" viewBox="0 0 10 10"><circle class="line2" cx="5" cy="5" r="5"/></svg>Firebase</dt><dd>\(figures.firebase.grouped)</dd>\(figures.webPush > 0 ? webPush : "")\
            \(figures.huawei > 0 ? huawei : "")
            <dt>token in doubt</dt><dd>\(figures.inDoubt.grouped)</dd><dt>unregistered</dt><dd>\(figures.unregistered.grouped)</dd></dl></section>
            """
    }

    private var store: HTML {
        card(
            "store", title: "Database", state: status.storeFailure == nil ? "works" : "fails", isWell: status.storeFailure == nil,
            rows: [("size", "\(status.databaseBytes.asBytes)"), ("topics", "\(status.topics.grouped)")], note: status.storeFailure)
    }

    // MARK: Cluster

    /// Empty for a single node.
    private var cluster: HTML {
        guard let cluster = status.cluster else { return "" }
        let rows: [HTML] = cluster.nodes.map { node in
            let renewal = node.secondsSinceRenewal.map { "\(Duration.seconds($0).inWords) ago" } ?? "–"
            let marks = [node.isSelf ? "this node" : nil, node.isMaintainer ? "maintenance" : nil].compactMap(\.self).joined(
                separator: ", ")
            return """
                <tr><td><b>\(node.name)</b> <span>\(marks)</span></td><td>\(node.state)</td><td class="number">\(renewal)</td>\
                <td class="number">\(node.partitions.grouped)</td></tr>
                """
        }
        let isWell = status.leaseFailure == nil && cluster.unownedPartitions == 0
        let count = cluster.nodes.count
        let state: HTML = "\(count) \(count == 1 ? "node" : "nodes")"
        let note =
            status.leaseFailure
            ?? (cluster.unownedPartitions > 0
                ? "\(cluster.unownedPartitions) of \(cluster.partitionCount) partitions have no owner: their notifications wait" : nil)
        let failover = cluster.lastFailover.map { "\(Timestamp(rawValue: Int64($0.time * 1_000_000_000)).clock) UTC: \($0.text)" }
        return """
            <section class="cluster" data-live="cluster"><h2>Nodes</h2>
            <p class="state \(isWell ? "good" : "bad")">\(state)</p>\(note.map { ["<p class=\"note\">\($0)</p>"] } ?? [])
            <table><thead><tr><th>node</th><th>lease</th><th class="number">renewed</th>\
            <th class="number">partitions of \(cluster.partitionCount)</th></tr></thead><tbody>\(rows)</tbody></table>
            <dl><dt>last failover since the start</dt><dd>\(failover ?? "none")</dd>\(standbys(cluster))</dl></section>
            """
    }

    private func standbys(_ cluster: ClusterStatus) -> [HTML] {
        guard let standbys = cluster.standbys else {
            return ["<dt>standbys of the database</dt><dd>\(cluster.standbysProblem ?? "unknown")</dd>"]
        }
        guard !standbys.isEmpty else { return ["<dt>standbys of the database</dt><dd>none</dd>"] }
        return standbys.map { standby in
            let lag = standby.lagBytes.map { "\($0.asBytes) behind" } ?? "lag unknown"
            let delay = standby.lagSeconds.map { ", \($0.asTime)" } ?? ""
            return "<dt>standby \(standby.name)</dt><dd>\(standby.state), \(standby.sync), \(lag)\(delay)</dd>"
        }
    }

    // MARK: Protocols

    /// The lines of each protocol, of Web Push and of the cluster, as `admin status` has them.
    private var protocols: [HTML] {
        status.protocols.enumerated().filter { !$1.lines.isEmpty }.map { index, proto in
            let lines: [HTML] = proto.lines.map { "<dt>\($0.name)</dt><dd>\($0.value)</dd>" }
            return """
                <section class="protocol" data-live="protocol\(index)"><h2>\(proto.name)</h2>
                <dl>\(lines)</dl></section>
                """
        }
    }

    // MARK: Charts

    private var charts: [HTML] {
        status.charts.enumerated().map { index, chart in
            PageChart(chart: chart, times: status.chartTimes).figure(id: "chart\(index)")
        }
    }

    // MARK: Tables

    /// A section with a table, or with `none` if it has no rows.
    private func table(_ id: String, _ title: HTML, _ header: HTML, _ rows: [HTML], none: HTML = "None since the start.") -> HTML {
        let table: HTML = "<table><thead><tr>\(header)</tr></thead>\n<tbody>\(rows)</tbody></table>"
        let empty: HTML = "<p class=\"none\">\(none)</p>"
        return "<section data-live=\"\(id)\"><h2>\(title)</h2>\(rows.isEmpty ? empty : table)</section>"
    }

    private var losses: HTML {
        let rows: [HTML] = status.losses.map { loss in
            """
            <tr class="\(loss.lately > 0 ? "fresh" : "old")"><td>\(loss.name)</td><td class="number">\(loss.lately.grouped)</td>\
            <td class="number">\(loss.total.grouped)</td></tr>
            """
        }
        return table(
            "losses", "Losses",
            "<th>reason</th><th class=\"number\">last \(status.lately)</th><th class=\"number\">since the start</th>", rows,
            none: "No losses since the start.")
    }

    private var alarms: HTML {
        let rows: [HTML] = status.alarms.prefix(12).map { alarm in
            let isActive = alarm.isActive(at: status.time)
            let end = isActive ? status.time : alarm.ended ?? alarm.last
            let mark: HTML = isActive ? " <em>now</em>" : ""
            return """
                <tr class="\(isActive ? "fresh" : "old")"><td><b>\(alarm.kind.title)</b>\(mark)<br><span>\(alarm.reason)</span>\
                <br><span>\(article(about: alarm.kind))</span></td>\
                <td class="number"><time>\(alarm.since.clock)</time><br><span>\(isActive ? "for" : "lasted") \
                \(end.since(alarm.since).inWords)</span></td></tr>
                """
        }
        return table("alarms", "Last alarms", "<th>alarm</th><th class=\"number\">when (UTC)</th>", rows)
    }

    /// The section that describes an alarm: linked if the address of the documentation is configured, else named.
    private func article(about kind: AlarmKind) -> HTML {
        let title = "Troubleshooting, section \u{201C}\(kind.section.rawValue)\u{201D}"
        guard let address = status.documentation else { return "remedy: article \(title)" }
        return "remedy: <a href=\"\(address)/troubleshooting#\(kind.section.anchor)\" rel=\"noreferrer\">\(title)</a>"
    }

    private var errors: HTML {
        let rows: [HTML] = status.errors.prefix(12).map { error in
            let reason: [HTML] = error.reason.map { ["<br><span>\($0)</span>"] } ?? []
            return """
                <tr><td>\(error.message)\(reason)</td><td class="number">\(error.count.grouped)</td>\
                <td class="number"><time>\(error.last.clock)</time></td></tr>
                """
        }
        return table(
            "errors", "Last errors <small>of the log</small>",
            "<th>warning or error</th><th class=\"number\">count</th><th class=\"number\">last (UTC)</th>", rows)
    }

    // MARK: Search

    /// Shown by the script, which computes the hashes. Not replaced by updates.
    private static let search = HTML(
        trusted: """
            <section id="search" hidden><h2>Search <small>answered on this machine only</small></h2>
            <form autocomplete="off"><input id="wanted" aria-label="Public key, key hash or notif_id" placeholder="public key, key hash or notif_id" \
            maxlength="200" spellcheck="false" autocapitalize="off"><button>Search</button></form>
            <p class="hint">A key is hashed in this browser: only its hashes are sent, in the body of a request.</p>
            <dl id="found"></dl></section>
            """)
}

extension PageFigures {
    /// The time span of the charts, in words.
    fileprivate var lately: String { max(span, .seconds(1)).inWords }
}

extension Int {
    /// `12,345`.
    var grouped: String {
        var text = ""
        for (index, digit) in "\(magnitude)".reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3) { text.append(",") }
            text.append(digit)
        }
        return (self < 0 ? "-" : "") + String(text.reversed())
    }

    /// `1.5 MiB`.
    var asBytes: String {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
        var (value, unit) = (Double(self), 0)
        while value >= 1024, unit < units.count - 1 { (value, unit) = (value / 1024, unit + 1) }
        return unit == 0 ? "\(self) bytes" : "\((value * 10).rounded() / 10) \(units[unit])"
    }
}

extension Double {
    /// Seconds, as `25 ms` or `2.5 s`.
    var asTime: String {
        if isInfinite { return "more than 10 s" }
        return self < 1 ? "\((self * 10_000).rounded() / 10) ms".replacing(".0 ", with: " ") : "\(self) s".replacing(".0 ", with: " ")
    }
}

extension Timestamp {
    /// `2026-01-02 03:04:05`, UTC.
    var clock: String {
        let style = Date.ISO8601FormatStyle(dateTimeSeparator: .space).year().month().day().time(includingFractionalSeconds: false)
        return Date(timeIntervalSince1970: seconds).formatted(style)
    }
}
