import Foundation
import NodeAssembly
@testable import NodeMetrics
import TestSupport
import Testing

@Suite("The node's metrics")
struct MetricTests {
    private let groups = NodeAssembly.metrics

    @Test("Each counter has a unique name and series, with the labels of a metric of the node")
    func series() {
        let metrics = groups.flatMap(\.metrics)
        #expect(Set(metrics.map(\.name)).count == metrics.count)
        let counters = groups.flatMap(\.counters)
        #expect(counters.count > 90)
        #expect(Set(counters.map(\.name)).count == counters.count)
        var known: Set<[String]> = []
        for counter in counters {
            guard let series = counter.series else { continue }
            #expect(metrics.contains(series.metric), "\(counter)")
            #expect(series.labels.map { type(of: $0).labelName } == series.metric.labels.map { $0.labelName }, "\(counter)")
            #expect(zip(series.labels, series.metric.labels).allSatisfy { type(of: $0) == $1 }, "\(counter)")
            #expect(series.metric.name.hasSuffix("_total"))
            #expect(known.insert([series.metric.name] + series.labels.map { $0.labelValue }).inserted, "\(counter)")
        }
    }

    @Test("All declared counters and metrics are in a group of the node")
    func allAreListed() throws {
        let sources = Repository.file("Sources")
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
        var declared: (counters: Set<String>, metrics: Set<String>) = ([], [])
        /// The prefixes of the names of counters that exist once for each case of a label.
        var families: Set<String> = []
        let counters = [" = Counter(", " = handled(", " = dropped("]
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            let text = try String(contentsOf: file, encoding: .utf8)
            guard (counters + [" = Metric(", " = LimitCounters("]).contains(where: { text.contains($0) }) else { continue }
            // Without the examples in comments.
            let code = text.split(separator: "\n").filter { !$0.contains("///") }.joined(separator: "\n")
            families.formUnion(code.matches(of: /Counter\("([^"\\]+)\\\(/).map { String($0.1) })
            families.formUnion(code.matches(of: /LimitCounters\(\s*"([^"]+)"/).map { String($0.1) + ": " })
            let declarations = code.split(separator: #/\n {4}(?:package|public) static let /#, omittingEmptySubsequences: false)
            for declaration in declarations.dropFirst() {
                let parts = declaration.components(separatedBy: "\"")
                guard parts.count > 1 else { continue }
                if counters.contains(where: { parts[0].contains($0) }) { declared.counters.insert(parts[1]) }
                if parts[0].contains(" = Metric(") { declared.metrics.insert(parts[1]) }
            }
        }
        let listed = Set(groups.flatMap(\.counters).map(\.name))
        #expect(declared.counters == listed.filter { name in !families.contains { name.hasPrefix($0) } })
        #expect(families.allSatisfy { family in listed.contains { $0.hasPrefix(family) } })
        #expect(declared.metrics == Set(groups.flatMap(\.metrics).map(\.name)))
    }

    @Test("The table of the article is up to date")
    func article() throws {
        let rows = groups.flatMap(\.metrics).map { metric in
            let labels = metric.labels.map { "`\($0.labelName)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.typeName) | \(labels.isEmpty ? "–" : labels) | \(metric.help) |"
        }
        let table = GeneratedTable("metrics", in: "Metrics.md")
        #expect(
            try table.isCurrent(["| metric | type | labels | meaning |", "|---|---|---|---|"] + rows), "run Deploy/dev/generate-tables")
    }
}
