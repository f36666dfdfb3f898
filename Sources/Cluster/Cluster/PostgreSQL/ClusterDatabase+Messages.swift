package import Storage
import StorePostgreSQL

/// A row of finished messages written by another node: see `Cluster/FinishedLog`.
package struct FinishedRow: Hashable, Sendable {
    package let node: NodeID
    package let sequence: Int64
    package let prefixes: [UInt64]

    package init(node: NodeID, sequence: Int64, prefixes: [UInt64]) {
        (self.node, self.sequence, self.prefixes) = (node, sequence, prefixes)
    }
}

extension ClusterDatabase {
    /// The maximum number of rows that ``finishedRows(after:except:)`` returns.
    package static let finishedRowLimit = 256

    /// Writes a row of finished messages, unless it exists already, and deletes the node's old rows.
    ///
    /// - Throws: `StoreError` if the transaction was not committed, or its outcome is unknown.
    package func write(_ row: FinishedLog.Row) throws(StoreError) {
        try finished.transaction { connection in
            let prefixes = row.prefixes.flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) }
            _ = try connection.run([
                Statement(
                    "INSERT INTO cluster_finished (node, sequence, prefixes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    [.integer(row.node.stored), .integer(row.sequence), .bytes(prefixes)]),
                Statement(
                    "DELETE FROM cluster_finished WHERE node = $1 AND sequence <= $2",
                    [.integer(row.node.stored), .integer(row.deleteUpTo)]),
            ])
        }
    }

    /// Rows that other nodes have added since the last read, ordered by node and sequence number. If the result has ``finishedRowLimit`` rows, more
    /// may follow.
    ///
    /// - Parameters:
    ///   - sequences: the sequence number of the last row read, by node. All rows of a node that is missing here are returned.
    ///   - own: the node that reads; its rows are left out.
    package func finishedRows(after sequences: [NodeID: Int64], except own: NodeID) throws(StoreError) -> [FinishedRow] {
        let known = Array(sequences)
        let select = Statement(
            """
            SELECT f.node, f.sequence, f.prefixes \
            FROM cluster_finished f LEFT JOIN unnest($1, $2) AS known (node, sequence) ON known.node = f.node \
            WHERE f.node <> $3 AND (known.sequence IS NULL OR f.sequence > known.sequence) \
            ORDER BY f.node, f.sequence LIMIT \(Self.finishedRowLimit)
            """, [.integers(known.map(\.key.stored)), .integers(known.map(\.value)), .integer(own.stored)])
        return try messages.read([select]) { found in
            try found[0].map { row in
                FinishedRow(node: NodeID(stored: try row.integer(0)), sequence: try row.integer(1), prefixes: try row.prefixes(2))
            }
        }
    }

    /// The stored claims of these messages; a message without a claim is left out.
    package func claims(_ keys: [(hour: ClaimWindow.Hour, key: MessageKey)]) throws(StoreError) -> [MessageKey: Claim] {
        guard !keys.isEmpty else { return [:] }
        // A statement for each hour, so that each reads only one partition.
        let selects = Dictionary(grouping: keys, by: \.hour).map { hour, keys in
            Statement(
                "SELECT key, node, kind FROM claim WHERE hour = $1 AND key = ANY($2)",
                [.integer(hour), .byteStrings(keys.map(\.key.bytes))])
        }
        return try messages.read(selects) { found in
            var claims: [MessageKey: Claim] = [:]
            for row in found.joined() {
                guard let key = MessageKey(try row.bytes(0)), let kind = Claim.Kind(rawValue: Int(try row.integer(2))) else {
                    throw UnexpectedValue()
                }
                claims[key] = Claim(node: NodeID(stored: try row.integer(1)), kind: kind)
            }
            return claims
        }
    }

    /// The time of the database's clock, in whole seconds since 1970.
    package func now() throws(StoreError) -> Int64 {
        try messages.read([Self.clock]) { found in
            guard let row = found[0].first else { throw UnexpectedValue() }
            return try row.integer(0)
        }
    }

    /// Microseconds since 1970.
    static let preciseClock = Statement("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    static let clock = Statement("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")

    /// The hours whose claims are kept.
    package func claimWindow() throws(StoreError) -> ClaimWindow {
        try messages.read([Statement("SELECT first_hour FROM cluster"), ClaimPartition.names]) { found in
            guard let row = found[0].first else { throw UnexpectedValue() }
            return ClaimWindow(
                firstHour: try row.integer(0), lastHour: try found[1].compactMap { ClaimPartition.hour(of: try $0.text(0)) }.max() ?? .min)
        }
    }
}

extension Row {
    /// Decodes prefixes of 8 bytes each, big-endian.
    fileprivate func prefixes(_ index: Int) throws(UnexpectedValue) -> [UInt64] {
        let bytes = try bytes(index)
        guard bytes.count.isMultiple(of: 8) else { throw UnexpectedValue() }
        return stride(from: 0, to: bytes.count, by: 8).map { start in
            bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }
}
