/// One membership of a node in the cluster: 64 random bits that a process draws each time it joins.
///
/// A process that restarts, or that lost its lease, joins under a new id. So an id never comes back after its lease ended, and the id in a row
/// identifies the process that wrote it. The names shown to operators are in ``LeaseRow/name``.
package struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package static func < (left: NodeID, right: NodeID) -> Bool { left.rawValue < right.rawValue }

    /// 16 hexadecimal digits.
    package var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
