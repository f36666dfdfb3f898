import CurlClient
import NodeMetrics
import PushNode

/// A parsed scrape.
struct Scrape {
    let text: String
    /// Values by name and labels, as exposed.
    let samples: [String: Double]

    init(_ text: String) {
        self.text = text
        var samples: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let blank = line.lastIndex(of: " ") else { continue }
            samples[String(line[..<blank])] = Double(line[line.index(after: blank)...])
        }
        self.samples = samples
    }

    subscript(_ metric: Metric, _ labels: String = "") -> Double? {
        samples[labels.isEmpty ? metric.name : "\(metric.name){\(labels)}"]
    }

    /// The sum of all series with these labels.
    func sum(_ metric: Metric, _ label: String = "") -> Double {
        samples.reduce(0) { sum, sample in
            let isOfMetric = sample.key == metric.name || sample.key.hasPrefix(metric.name + "{")
            return isOfMetric && (label.isEmpty || sample.key.contains(label)) ? sum + sample.value : sum
        }
    }
}

extension RunningNode {
    /// The HTTP address of a node that listens.
    var url: String {
        get async throws {
            try await wait { node.httpPort != nil }
            return "http://127.0.0.1:\(node.httpPort ?? 0)"
        }
    }

    func get(_ path: String) async throws -> HTTPResponse {
        try await client.send(HTTPRequest(method: "GET", url: try await url + path, timeout: .seconds(60)))
    }

    func scrape() async throws -> Scrape {
        Scrape(String(decoding: try await get("/metrics").body, as: UTF8.self))
    }
}
