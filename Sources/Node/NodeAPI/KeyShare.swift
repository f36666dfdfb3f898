/// The part of a protocol's keys that one of several nodes serves, for example the accounts that it monitors.
public struct KeyShare: Equatable, Sendable {
    /// Increases with each change of the nodes that share the keys.
    private let generation: Int
    /// The number of nodes that share the keys; 0 while each serves all.
    package let nodeCount: Int
    private let isOwn: @Sendable (UInt64) -> Bool

    package init(generation: Int, nodeCount: Int, isOwn: @escaping @Sendable (UInt64) -> Bool) {
        self.generation = generation
        self.nodeCount = nodeCount
        self.isOwn = isOwn
    }

    /// - Parameter key: 8 evenly distributed bytes.
    package func contains(_ key: UInt64) -> Bool { isOwn(key) }

    public static func == (left: KeyShare, right: KeyShare) -> Bool { left.generation == right.generation }
}
