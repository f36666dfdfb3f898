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
        /// The maximum number of look-ups at a time: a name that no server answers for delays the others little.
        public var concurrentLookUpCount = 8

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
    private var inProgress: [String: Step] = [:]
    private var known: Set<String> = []
    /// Whether a limit kept names or nodes out.
    private var isCut = false
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

    /// Whether ``nodes`` are all nodes of the lists: each name was looked up and had a usable entry, and no limit was reached.
    public var isComplete: Bool { steps.isEmpty && inProgress.isEmpty && failures.isEmpty && !isCut }

    /// The next name to look up, beside those in progress; nil when there is none, until a response adds names.
    public mutating func next() -> String? {
        guard nodes.count < limits.nodeCount, lookUpCount < limits.lookUpCount, inProgress.count < limits.concurrentLookUpCount,
            !steps.isEmpty
        else { return nil }
        steps.swapAt(Int.random(in: steps.indices, using: &generator), steps.count - 1)
        let step = steps.removeLast()
        inProgress[step.name] = step
        lookUpCount += 1
        return step.name
    }

    /// Takes the response for a name of ``next()``. Ignored when no look-up of the name is in progress.
    ///
    /// - Parameter texts: The TXT records of the name, the parts of each concatenated; empty when there are none or the look-up failed.
    public mutating func answered(_ texts: [String], to name: String) {
        guard let step = inProgress.removeValue(forKey: name) else { return }
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
        failures[name] = failure
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
        case .node(let record) where !isLinks:
            guard !nodes.contains(record) else { return }
            if nodes.count < limits.nodeCount { nodes.append(record) } else { isCut = true }
        // Nodes belong into the node tree, links into the link tree.
        case .link, .node: throw .malformed
        }
    }

    private mutating func addTree(_ url: NodeTreeURL) {
        guard treeCount < limits.treeCount else { return isCut = true }
        guard known.insert(url.domain).inserted else { return }
        treeCount += 1
        steps.append(.root(url))
    }

    private mutating func add(_ hash: String, of tree: NodeTreeURL, isLinks: Bool) {
        let step = Step.entry(hash: hash, tree: tree, isLinks: isLinks)
        // Names beyond the look-up limit need not be stored.
        guard steps.count + lookUpCount < limits.lookUpCount else { return isCut = true }
        if known.insert(step.name.lowercased()).inserted { steps.append(step) }
    }

    /// Walks to the end, or until the task is cancelled, with several look-ups at a time.
    ///
    /// - Parameters:
    ///   - lookUp: Returns the TXT records of a name, the parts of each concatenated; empty when the look-up fails. See
    ///     ``DNSClient/texts(of:)``.
    ///   - found: Called with the new nodes of each response.
    public mutating func run(
        lookUp: @escaping @Sendable (String) async -> [String], found: ([NodeRecord]) -> Void = { _ in }
    ) async {
        await withTaskGroup(of: (name: String, texts: [String]).self) { group in
            while !Task.isCancelled {
                while let name = next() { group.addTask { (name, await lookUp(name)) } }
                guard let response = await group.next() else { return }
                let knownCount = nodes.count
                answered(response.texts, to: response.name)
                if nodes.count > knownCount { found(Array(nodes[knownCount...])) }
            }
        }
    }
}
