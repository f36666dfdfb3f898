import Core
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import WakuP2P

/// The texts of a domain's records, by name.
typealias Zone = [String: [String]]

private func base32(_ bytes: [UInt8]) -> String { Base32.encode(bytes).uppercased() }

/// A signed list of entries, with a branch for each half.
struct Tree {
    let key = PrivateKey.generate()
    let domain: String
    var zone: Zone = [:]
    var url: String { "enrtree://\(base32(key.publicKey.compressed))@\(domain)" }

    @discardableResult
    mutating func add(_ text: String) -> String {
        let hash = base32(Array(Keccak256.hash(Array(text.utf8)).prefix(16)))
        zone["\(hash).\(domain)"] = [text]
        return hash
    }

    mutating func sign(nodes: [String], links: [String], sequence: Int = 1) {
        let nodes = add("enrtree-branch:" + nodes.map { add($0) }.joined(separator: ","))
        let links = add("enrtree-branch:" + links.map { add($0) }.joined(separator: ","))
        let text = "enrtree-root:v1 e=\(nodes) l=\(links) seq=\(sequence)"
        zone[domain] = [text + " sig=" + Base64URL.encode(Signature(of: Keccak256.hash(Array(text.utf8)), by: key).bytes)]
    }
}

@Suite("DNS node lists")
struct NodeTreeTests {
    /// With the key that signed the EIP's list; the URL shown in the EIP has another key.
    private static let url = "enrtree://AKPYQIUQIL7PSIACI32J7FGZW56E5FKHEFCCOFHILBIMW3M6LWXS2@nodes.example.org"
    private static let otherURL = "enrtree://AM5FCQLWIZX2QFPNJAP7VUERCCRNGRHWZG3YYHIUV7BVDQ5FDPRT2@nodes.example.org"
    private static let root =
        "enrtree-root:v1 e=JWXYDBPXYWG6FX3GMDIBFA6CJ4 l=C7HRFPF3BLGF3YR4DY5KX3SMBE seq=1 sig=o908WmNp7LibOfPsr4btQwatZJ5URBr2ZAuxvK4UWHlsB9sUOTJQaGAlLPVAhM__XJesCHxLISo94z5Z2a463gA"
    /// EIP-1459's zone.
    private static let zone: Zone = [
        "nodes.example.org": [root],
        "C7HRFPF3BLGF3YR4DY5KX3SMBE.nodes.example.org": [
            "enrtree://AM5FCQLWIZX2QFPNJAP7VUERCCRNGRHWZG3YYHIUV7BVDQ5FDPRT2@morenodes.example.org"
        ],
        "JWXYDBPXYWG6FX3GMDIBFA6CJ4.nodes.example.org": [
            "enrtree-branch:2XS2367YHAXJFGLZHVAWLQD4ZY,H4FHT4B454P6UXFD7JCYQ5PWDY,MHTDO6TMUBRIA2XWG5LUDACK24"
        ],
        "2XS2367YHAXJFGLZHVAWLQD4ZY.nodes.example.org": [
            "enr:-HW4QOFzoVLaFJnNhbgMoDXPnOvcdVuj7pDpqRvh6BRDO68aVi5ZcjB3vzQRZH2IcLBGHzo8uUN3snqmgTiE56CH3AMBgmlkgnY0iXNlY3AyNTZrMaECC2_24YYkYHEgdzxlSNKQEnHhuNAbNlMlWJxrJxbAFvA"
        ],
        "H4FHT4B454P6UXFD7JCYQ5PWDY.nodes.example.org": [
            "enr:-HW4QAggRauloj2SDLtIHN1XBkvhFZ1vtf1raYQp9TBW2RD5EEawDzbtSmlXUfnaHcvwOizhVYLtr7e6vw7NAf6mTuoCgmlkgnY0iXNlY3AyNTZrMaECjrXI8TLNXU0f8cthpAMxEshUyQlK-AM0PW2wfrnacNI"
        ],
        "MHTDO6TMUBRIA2XWG5LUDACK24.nodes.example.org": [
            "enr:-HW4QLAYqmrwllBEnzWWs7I5Ev2IAs7x_dZlbYdRdMUx5EyKHDXp7AV5CkuPGUPdvbv1_Ms1CPfhcGCvSElSosZmyoqAgmlkgnY0iXNlY3AyNTZrMaECriawHKWdDRk2xeZkrOXBQ0dfMFLHY4eENZwdufn1S1o"
        ],
    ]

    private func walk(
        _ url: String, in zone: Zone, limits: NodeTreeWalk.Limits = .init(), minimumSequences: [String: UInt64] = [:], seed: UInt64 = 1
    ) async throws -> (NodeTreeWalk, lookUps: Int) {
        var walk = NodeTreeWalk(
            [try NodeTreeURL(parsing: url)], limits: limits, minimumSequences: minimumSequences, generator: SeededGenerator(seed: seed))
        let asked = Log<String>()
        await walk.run { name in
            asked.add([name])
            return zone[name] ?? []
        }
        return (walk, asked.all.count)
    }

    @Test("The URL and key of EIP-1459")
    func url() throws {
        let url = try NodeTreeURL(parsing: Self.url)
        #expect(
            url.publicKey.hex
                == "049f88229042fef9200246f49f94d9b77c4e954721442714e85850cb6d9e5daf2d880ea0e53cb3ac1a75f9923c2726a4f941f7d326781baa6380754a360de5c2b6"
        )
        #expect(url.domain == "nodes.example.org")
        for text in [
            "", "enrtree://", "enr:abc", "enrtree://@nodes.example.org", Self.url + "@x", "enrtree://AAAA@nodes.example.org",
            Self.url + "/..", Self.url.replacing("nodes", with: ""), Self.url + " x",
        ] {
            #expect(throws: ENRError.malformed) { try NodeTreeURL(parsing: text) }
        }
    }

    @Test("The list of EIP-1459 in any order", arguments: 1...5 as ClosedRange<UInt64>)
    func example(seed: UInt64) async throws {
        let (walk, lookUps) = try await walk(Self.url, in: Self.zone, seed: seed)
        #expect(walk.nodes.count == 3)
        #expect(Set(walk.nodes.map { hexString($0.publicKey.compressed.prefix(4)) }) == ["020b6ff6", "028eb5c8", "02ae26b0"])
        #expect(walk.sequences == ["nodes.example.org": 1])
        // The linked list does not exist.
        #expect(walk.failures == ["morenodes.example.org": .malformed])
        #expect(lookUps == 7 && !walk.isComplete)
    }

    @Test("A root that is altered or signed by another key is refused")
    func signatures() async throws {
        #expect(try await walk(Self.otherURL, in: Self.zone).0.failures == ["nodes.example.org": .badSignature])
        var zone = Self.zone
        zone["nodes.example.org"] = [Self.root.replacing("seq=1", with: "seq=2")]
        var (walk, _) = try await walk(Self.url, in: zone)
        #expect(walk.nodes.isEmpty && walk.failures == ["nodes.example.org": .badSignature])
        zone["nodes.example.org"] = ["v=spf1 -all", Self.root]
        (walk, _) = try await self.walk(Self.url, in: zone)
        #expect(walk.nodes.count == 3)
        (walk, _) = try await self.walk(Self.url, in: zone, minimumSequences: ["nodes.example.org": 2])
        #expect(walk.nodes.isEmpty)
    }

    @Test("An entry that does not match its hash is skipped")
    func hashes() async throws {
        var zone = Self.zone
        let name = "2XS2367YHAXJFGLZHVAWLQD4ZY.nodes.example.org"
        zone[name] = zone["H4FHT4B454P6UXFD7JCYQ5PWDY.nodes.example.org"]
        let (walk, _) = try await walk(Self.url, in: zone)
        #expect(walk.nodes.count == 2)
        #expect(walk.failures[name] == .wrongHash)
    }

    @Test("Lists that link to each other are walked once")
    func links() async throws {
        var (one, two) = (Tree(domain: "one.example"), Tree(domain: "two.example"))
        let records = (0..<4).map { _ in "enr:" + Base64URL.encode(NodeRecordTests.record([("tcp", [1])], by: .generate())) }
        one.sign(nodes: Array(records[..<3]), links: [two.url])
        two.sign(nodes: Array(records[2...]), links: [one.url], sequence: 7)
        let zone = one.zone.merging(two.zone) { first, _ in first }
        let (walk, lookUps) = try await walk(one.url, in: zone)
        #expect(walk.nodes.count == 4)
        #expect(walk.failures.isEmpty)
        #expect(walk.sequences == ["one.example": 1, "two.example": 7])
        #expect(lookUps == zone.count && walk.isComplete)
    }

    @Test("Nodes in the link tree and links in the node tree are skipped")
    func halves() async throws {
        var tree = Tree(domain: "one.example")
        let record = "enr:" + Base64URL.encode(NodeRecordTests.record([], by: .generate()))
        tree.sign(nodes: [Self.url], links: [record])
        let (walk, _) = try await walk(tree.url, in: tree.zone)
        #expect(walk.nodes.isEmpty && walk.failures.count == 2)
    }

    @Test("Several names are looked up at a time, and one without a response does not delay the others")
    func concurrency() async throws {
        var tree = Tree(domain: "one.example")
        tree.sign(nodes: (0..<30).map { _ in "enr:" + Base64URL.encode(NodeRecordTests.record([], by: .generate())) }, links: [])
        let zone = tree.zone
        var pure = NodeTreeWalk([try NodeTreeURL(parsing: tree.url)])
        let root = pure.next()
        #expect(root == tree.domain)
        pure.answered(zone[tree.domain] ?? [], to: tree.domain)
        // The branches of nodes and of links.
        let branches = [pure.next(), pure.next()].compactMap(\.self)
        let none = pure.next()
        #expect(none == nil)
        for name in branches { pure.answered(zone[name] ?? [], to: name) }
        var names: Set<String> = []
        while let name = pure.next() { names.insert(name) }
        #expect(names.count == 8)
        pure.answered([], to: "other.example")
        #expect(pure.failures.isEmpty)

        let answered = Log<String>()
        let state = Mutex<(count: Int, held: String?)>((0, nil))
        var walk = NodeTreeWalk([try NodeTreeURL(parsing: tree.url)])
        await walk.run { name in
            let isHeld = state.withLock { state in
                state.count += 1
                // The first node.
                if state.count == 4 { state.held = name }
                return state.count == 4
            }
            if isHeld { try? await eventually { answered.all.count == zone.count - 1 } }
            answered.add([name])
            return zone[name] ?? []
        }
        #expect(answered.all.last == state.withLock { $0.held })
        #expect(walk.nodes.count == 30 && walk.isComplete)
    }

    @Test("The walk ends for lists of any size and with cycles")
    func bounds() async throws {
        // Endless entries: a branch that contains itself can't be made, but many branches can.
        var tree = Tree(domain: "one.example")
        var branches: [String] = []
        for number in 0..<50 {
            let hashes = (0..<20).map { base32(Array(Keccak256.hash([UInt8(number), $0]).prefix(16))) }
            branches.append("enrtree-branch:" + hashes.joined(separator: ","))
        }
        tree.sign(nodes: branches, links: [])
        var limits = NodeTreeWalk.Limits()
        limits.lookUpCount = 100
        let (walk, lookUps) = try await walk(tree.url, in: tree.zone, limits: limits)
        #expect(lookUps <= 100 && lookUps > 50)
        #expect(walk.nodes.isEmpty)

        var many = Tree(domain: "two.example")
        many.sign(nodes: (0..<20).map { _ in "enr:" + Base64URL.encode(NodeRecordTests.record([], by: .generate())) }, links: [])
        limits.nodeCount = 5
        let cut = try await self.walk(many.url, in: many.zone, limits: limits).0
        #expect(cut.nodes.count == 5 && !cut.isComplete)
        let wide = "enrtree-branch:" + [String](repeating: "2XS2367YHAXJFGLZHVAWLQD4ZY", count: 65).joined(separator: ",")
        let hash = base32(Array(Keccak256.hash(Array(wide.utf8)).prefix(16)))
        #expect(throws: ENRError.tooLong) { try NodeTreeEntry(parsing: wide, hash: hash) }
        let short = base32(Array(Keccak256.hash(Array("enrtree-branch:".utf8)).prefix(8)))
        #expect(!NodeTreeEntry.isHash(short))
    }
}
