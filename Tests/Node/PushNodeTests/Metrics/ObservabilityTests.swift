import Foundation
import NodeAssembly
import NodeMetrics
import TestSupport
import Testing

@Suite("Deploy/observability")
struct ObservabilityTests {
    private static let folder = Repository.file("Deploy/observability")

    private func text(_ name: String) throws -> String {
        try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
    }

    private func promtool(_ arguments: String...) async throws {
        let ended = try await ExternalTool.run("promtool", arguments)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    @Test("Each alert is raised by its condition only")
    func alerts() async throws {
        try await promtool("check", "rules", Self.folder.path + "/alerts.yml")
        try await promtool("test", "rules", Self.folder.path + "/alerts-test.yml")
        let names = try text("alerts.yml").matches(of: /- alert: (\w+)/).map(\.1)
        #expect(names.count > 10)
        let tests = try text("alerts-test.yml")
        for name in names {
            for end in ["raised", "silent"] { #expect(tests.contains("- name: \(name) \(end)\n"), "\(name)") }
        }
    }

    @Test(
        "Alerts and dashboard use existing metrics, labels and values",
        arguments: ["alerts.yml", "alerts-test.yml", "dashboard.json"])
    func names(file: String) throws {
        let text = try text(file).replacing("\\\"", with: "\"")
        let used = text.matches(of: /\b((?:waku_push|process)_[a-z_]+)(?:\{([^}]*)\})?/)
        #expect(used.count > 15)
        for use in used {
            let (name, selector) = (String(use.1), use.2 ?? "")
            guard let metric = NodeAssembly.metrics.metric(ofSeries: name) else {
                Issue.record("\(file) uses \(name), which is no metric")
                continue
            }
            for match in selector.matches(of: /(\w+)\s*(?:=|!=|=~|!~)\s*"([^"]*)"/) where !["instance", "job", "le"].contains(match.1) {
                let label = metric.labels.first { $0.labelName == match.1 }
                for value in match.2.split(separator: "|") {
                    #expect(label?.isValue(String(value)) == true, "\(file): \(name) has no \(match.1)=\(value)")
                }
            }
        }
    }

    @Test("Each alarm has an alert")
    func alarms() throws {
        // Those with an alert that has a condition of its own.
        let others: Set<AlarmKind> = [
            .relayDetached, .gap, .answersUnconfirmed, .gorushGivenUp, .gorushSlow, .gorushMisconfigured, .pushServiceCredentials,
            .tokensHeldOff, .storeFails,
        ]
        let matches = try text("alerts.yml").matches(of: /waku_push_alarm_active\{alarm=~?"([a-z_|]+)"\}/)
        let named = matches.flatMap { $0.1.split(separator: "|") }.compactMap { AlarmKind(rawValue: String($0)) }
        #expect(Set(named) == Set(AlarmKind.allCases).subtracting(others))
    }

    @Test("The article on troubleshooting has each alert and each alarm")
    func troubleshooting() throws {
        let article = try String(contentsOf: GeneratedTable.article("Troubleshooting.md"), encoding: .utf8)
        let words = Set(article.split { !$0.isLetter && $0 != "_" })
        for match in try text("alerts.yml").matches(of: /- alert: (\w+)/) { #expect(words.contains(match.1), "\(match.1)") }
        for alarm in AlarmKind.allCases { #expect(article.contains("alarm `\(alarm.rawValue)`"), "\(alarm.rawValue)") }
    }

    @Test("The dashboard adds up no figures of a database that several nodes share")
    func sharedFigures() throws {
        let text = try text("dashboard.json").replacing("\\\"", with: "\"")
        let shared = NodeAssembly.metrics.flatMap(\.metrics).filter { $0.help.contains("of the whole database, the same at each node") }
            .map(\.name)
        #expect(Set(shared).isSuperset(of: ["waku_push_registrations", "waku_push_session_subscriptions"]))
        for name in shared {
            for place in text.ranges(of: name + "{") {
                #expect(text[..<place.lowerBound].suffix(60).firstMatch(of: /max(?: by \([a-z, ]+\))? ?\($/) != nil, "\(name)")
            }
        }
    }

    @Test("The dashboard's queries can be parsed")
    func dashboard() async throws {
        struct Dashboard: Decodable {
            struct Panel: Decodable {
                struct Target: Decodable { let expr: String }
                let targets: [Target]?
            }
            let panels: [Panel]
        }
        let dashboard = try JSONDecoder().decode(Dashboard.self, from: Data(try text("dashboard.json").utf8))
        let queries = dashboard.panels.flatMap { $0.targets ?? [] }.map(\.expr)
        #expect(queries.count > 20)
        let rules = queries.enumerated().map { index, query in
            let query = query.replacing("$__rate_interval", with: "5m").replacing("$instance", with: ".*")
            return "      - record: query:\(index)\n        expr: '\(query)'\n"
        }
        let folder = try TemporaryFolder()
        let file = folder.path + "/rules.yml"
        try Data(("groups:\n  - name: dashboard\n    rules:\n" + rules.joined()).utf8).write(to: URL(fileURLWithPath: file))
        try await promtool("check", "rules", file)
    }
}

extension [MetricGroup] {
    /// The metric that has a series of this name; nil if there is none.
    func metric(ofSeries name: String) -> Metric? {
        let metrics = flatMap(\.metrics)
        let families = ["_bucket", "_sum", "_count"].filter(name.hasSuffix).map { String(name.dropLast($0.count)) }
        return ([name] + families).lazy.compactMap { name in metrics.first { $0.name == name } }.first
    }
}
