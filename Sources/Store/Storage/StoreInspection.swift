import Core

/// The result of a database inspection.
package struct StoreInspection: Codable, Hashable, Sendable {
    package struct Rows: Codable, Hashable, Sendable {
        package var count = 0
        /// Rows that can't be opened with the node's key.
        package var unreadable = 0

        package init(count: Int = 0, unreadable: Int = 0) {
            self.count = count
            self.unreadable = unreadable
        }

        package mutating func add(_ failure: (any Error)?) {
            count += 1
            if failure != nil { unreadable += 1 }
        }
    }

    /// Problems as reported by the engine; at most ``problemLimit``.
    package var problems: [String] = []
    /// Row counts of the tables with encrypted contents, by label: `registrations`, `notifications`. nil when the rows were not opened.
    package var rows: [String: Rows]?
    /// A rotation of the storage key was interrupted after the rows were re-encrypted: free pages may still hold contents under the old key.
    package var isRotationUnfinished = false

    package init(problems: [String] = [], rows: [String: Rows]? = nil, isRotationUnfinished: Bool = false) {
        self.problems = problems
        self.rows = rows
        self.isRotationUnfinished = isRotationUnfinished
    }

    package static let problemLimit = 20
    package static let sampleSize = 10_000

    package var isWhole: Bool { problems.isEmpty && unreadableCount == 0 }

    /// Rows that can't be opened with the node's key.
    package var unreadableCount: Int { rows?.values.reduce(0) { $0 + $1.unreadable } ?? 0 }

    // MARK: JSON

    /// `problems`, `isRotationUnfinished`, and a key for each label of ``rows``.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: DynamicKey.self)
        problems = try container.decode([String].self, forKey: "problems")
        isRotationUnfinished = try container.decode(Bool.self, forKey: "isRotationUnfinished")
        let labels = container.allKeys.filter { $0 != "problems" && $0 != "isRotationUnfinished" }
        if !labels.isEmpty {
            rows = Dictionary(uniqueKeysWithValues: try labels.map { ($0.stringValue, try container.decode(Rows.self, forKey: $0)) })
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: DynamicKey.self)
        try container.encode(problems, forKey: "problems")
        try container.encode(isRotationUnfinished, forKey: "isRotationUnfinished")
        for (label, rows) in rows ?? [:] { try container.encode(rows, forKey: DynamicKey(stringValue: label)) }
    }
}
