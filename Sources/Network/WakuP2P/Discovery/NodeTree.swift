public import WakuCrypto
import Core

/// The URL of a DNS node list: its domain and the key that signs it, `enrtree://<base32 of a compressed key>@<domain>`, EIP-1459.
public struct NodeTreeURL: Hashable, Sendable, CustomStringConvertible {
    /// The key that signs the list's root.
    public let publicKey: PublicKey
    /// The domain of the list's root entry, in lower case.
    public let domain: String

    /// Parses a URL of at most 512 bytes.
    ///
    /// - Throws: ``ENRError``: `malformed`, `tooLong`
    public init(parsing text: some StringProtocol) throws(ENRError) {
        let scheme = "enrtree://"
        guard text.utf8.count <= 512 else { throw .tooLong }
        guard text.hasPrefix(scheme) else { throw .malformed }
        let parts = text.dropFirst(scheme.count).split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, let key = Base32.decode(parts[0], acceptsUpperCase: true), key.count == PublicKey.compressedByteCount,
            let publicKey = try? PublicKey(parsing: key), Self.isDomain(parts[1])
        else { throw .malformed }
        self.publicKey = publicKey
        domain = parts[1].lowercased()
        self.text = String(text)
    }

    private let text: String
    /// The URL as it was given.
    public var description: String { text }

    private static func isDomain(_ name: some StringProtocol) -> Bool {
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return name.utf8.count <= 220
            && labels.allSatisfy { label in
                1...63 ~= label.count && label.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
            }
    }

    /// Compares key and domain, not the text.
    public static func == (left: NodeTreeURL, right: NodeTreeURL) -> Bool {
        left.publicKey == right.publicKey && left.domain == right.domain
    }

    /// Hashes key and domain, as `==` compares them.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(publicKey)
        hasher.combine(domain)
    }
}

/// The signed root entry of a node list, at the domain itself: the hashes of the node tree and of the link tree.
///
///     enrtree-root:v1 e=<hash> l=<hash> seq=<number> sig=<base64 of a recoverable signature of Keccak-256 of the text before " sig=">
struct NodeTreeRoot: Hashable {
    let nodes: String
    let links: String
    let sequence: UInt64

    init(parsing text: String, signedBy key: PublicKey) throws(ENRError) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0] == "enrtree-root:v1", let nodes = Self.value(of: "e=", parts[1]),
            let links = Self.value(of: "l=", parts[2]), let sequence = Self.value(of: "seq=", parts[3]).flatMap({ UInt64($0) }),
            let bytes = Self.value(of: "sig=", parts[4]).flatMap({ Base64.decodeURL($0.utf8) }),
            NodeTreeEntry.isHash(nodes), NodeTreeEntry.isHash(links)
        else { throw .malformed }
        let signed = parts[..<4].joined(separator: " ")
        guard let signature = try? Signature(parsing: bytes),
            let signer = try? signature.signer(of: Keccak256.hash(Array(signed.utf8))), signer == key
        else { throw .badSignature }
        self.nodes = nodes
        self.links = links
        self.sequence = sequence
    }

    private static func value(of name: String, _ part: Substring) -> String? {
        part.hasPrefix(name) ? String(part.dropFirst(name.count)) : nil
    }
}

/// An entry of a node list, at a name below the domain: `enrtree-branch:<hash>,<hash>…`, `enrtree://…` or `enr:…`.
enum NodeTreeEntry: Hashable {
    case branch([String])
    case link(NodeTreeURL)
    case node(NodeRecord)

    /// The maximum length of an entry's text.
    static let maximumByteCount = 4096
    static let maximumBranchCount = 64

    /// - Parameters:
    ///   - text: The text of the TXT record, its parts concatenated.
    ///   - hash: The base32 prefix of Keccak-256 of the text.
    init(parsing text: String, hash: String) throws(ENRError) {
        guard text.utf8.count <= Self.maximumByteCount else { throw .tooLong }
        guard let expected = Base32.decode(hash, acceptsUpperCase: true), Keccak256.hash(Array(text.utf8)).starts(with: expected) else {
            throw .wrongHash
        }
        let branch = "enrtree-branch:"
        if text.hasPrefix(branch) {
            let hashes = text.dropFirst(branch.count).split(separator: ",").map(String.init)
            guard hashes.count <= Self.maximumBranchCount else { throw .tooLong }
            guard hashes.allSatisfy(Self.isHash) else { throw .malformed }
            self = .branch(hashes)
        } else if text.hasPrefix("enrtree://") {
            self = .link(try NodeTreeURL(parsing: text))
        } else {
            self = .node(try NodeRecord(parsing: text))
        }
    }

    /// Whether the text is a hash of 12 to 32 bytes. Shorter ones are refused, since they could be forged.
    static func isHash(_ text: String) -> Bool {
        text.utf8.count <= 52 && (Base32.decode(text, acceptsUpperCase: true).map { 12...32 ~= $0.count } ?? false)
    }
}
