/// Walks DNS node lists, EIP-1459, in random order. Names to look up go out, TXT records come in; the result is a list of node records.
///
///     root ─▶ node branch ─▶ branch … ─▶ node
///       └───▶ link branch ─▶ branch … ─▶ link ─▶ another root
///
/// Each name is looked up once. Entries that are malformed, wrongly signed or do not match their hash are skipped and counted.
public struct NodeTreeWalk: Sendable {
    /// The limits of a walk, which bound its time and memory for lists of any size.
    public struct Limits: Hashable, Sendable {
        /// The number of node records after which the walk ends.
        public var nodeCount = 100
        /// The maximum number of names to look up.
        public var lookUpCount = 500
        /// The maximum number of lists, linked ones included.
        public var treeCount = 8
        /// The maximum number of TXT records of one name that are tried.
        public var textCount = 16

        /// The limits of a relay's peer discovery: 100 nodes in at most 500 look-ups.
        public init() {}
    }

    private enum Step {
        case root(NodeTreeURL)
        case entry(hash: String, tree: NodeTreeURL, isLinks: Bool)

        var name: String {
            switch self {
            case .root(let url): url.domain
            case .entry(let hash, let tree, _): "\(hash).\(tree.domain)"
            }
        }
    }

    private let limits: Limits
    private let minimumSequences: [String: UInt64]
    private var generator: any RandomNumberGenerator & Sendable
    private var steps: [Step] = []
    private var current: Step?
    private var known: Set<String> = []
    private var treeCount = 0
    private var lookUpCount = 0

    /// The node records found so far, without duplicates, in random order.
    public private(set) var nodes: [NodeRecord] = []
    /// The sequence numbers of the lists by domain, for the next walk: a list with a lower number is outdated or replayed.
    public private(set) var sequences: [String: UInt64] = [:]
    /// Names without a usable entry, and the reasons.
    public private(set) var failures: [String: ENRError] = [:]

    /// - Parameters:
    ///   - minimumSequences: The ``sequences`` of earlier walks. Lists with a lower sequence number are skipped.
    ///   - generator: The source of randomness for the order.
    public init(
        _ urls: [NodeTreeURL], limits: Limits = Limits(), minimumSequences: [String: UInt64] = [:],
        generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.limits = limits
        self.minimumSequences = minimumSequences
        self.generator = generator
        for url in urls { addTree(url) }
    }

    /// The next name to look up; nil when the walk is complete. Returns the same name until ``answered(_:)`` is called.
    public mutating func next() -> String? {
        if let current { return current.name }
        guard nodes.count < limits.nodeCount, lookUpCount < limits.lookUpCount, !steps.isEmpty else { return nil }
        steps.swapAt(Int.random(in: steps.indices, using: &generator), steps.count - 1)
        current = steps.removeLast()
        lookUpCount += 1
        return current?.name
    }

    /// Takes the response for the name of ``next()``. Ignored when no look-up is in progress.
    ///
    /// - Parameter texts: The TXT records of the name, the parts of each concatenated; empty when there are none or the look-up failed.
    public mutating func answered(_ texts: [String]) {
        guard let step = current else { return }
        current = nil
        var failure = ENRError.malformed
        for text in texts.prefix(limits.textCount) {
            do throws(ENRError) {
                switch step {
                case .root(let url): try take(NodeTreeRoot(parsing: text, signedBy: url.publicKey), of: url)
                case .entry(let hash, let tree, let isLinks):
                    try take(NodeTreeEntry(parsing: text, hash: hash), of: tree, isLinks: isLinks)
                }
                return
            } catch {
                failure = error
            }
        }
        failures[step.name] = failure
    }

    private mutating func take(_ root: NodeTreeRoot, of url: NodeTreeURL) throws(ENRError) {
        guard root.sequence >= minimumSequences[url.domain] ?? 0 else { throw .badSignature }
        sequences[url.domain] = root.sequence
        add(root.nodes, of: url, isLinks: false)
        add(root.links, of: url, isLinks: true)
    }

    private mutating func take(_ entry: NodeTreeEntry, of tree: NodeTreeURL, isLinks: Bool) throws(ENRError) {
        switch entry {
        case .branch(let hashes): for hash in hashes { add(hash, of: tree, isLinks: isLinks) }
        case .link(let url) where isLinks: addTree(url)
        case .node(let record) where !isLinks: if !nodes.contains(record) { nodes.append(record) }
        // Nodes belong into the node tree, links into the link tree.
        case .link, .node: throw .malformed
        }
    }

    private mutating func addTree(_ url: NodeTreeURL) {
        guard treeCount < limits.treeCount, known.insert(url.domain).inserted else { return }
        treeCount += 1
        steps.append(.root(url))
    }

    private mutating func add(_ hash: String, of tree: NodeTreeURL, isLinks: Bool) {
        let step = Step.entry(hash: hash, tree: tree, isLinks: isLinks)
        // Names beyond the look-up limit need not be stored.
        guard steps.count + lookUpCount < limits.lookUpCount, known.insert(step.name.lowercased()).inserted else { return }
        steps.append(step)
    }

    /// Walks to the end, or until the task is cancelled, one look-up after the other.
    ///
    /// - Parameter lookUp: Returns the TXT records of a name, the parts of each concatenated; empty when the look-up fails. See
    ///   ``DNSClient/texts(of:)``.
    public mutating func run(lookUp: (String) async -> [String]) async {
        while !Task.isCancelled, let name = next() { answered(await lookUp(name)) }
    }
}
