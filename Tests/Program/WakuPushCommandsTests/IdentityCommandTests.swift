import Foundation
import TestSupport
import Testing
import WakuCrypto

@Suite(.timeLimit(.minutes(5)))
struct IdentityCommandTests {
    private let folder: TemporaryFolder
    private let file: String

    init() throws {
        folder = try TemporaryFolder()
        file = folder.path + "/id.key"
    }

    private struct Overview: Decodable, Equatable {
        let publicKey, compressedPublicKey, keyHash, personalTopic, partitionedTopic: String
    }

    @Test func newCreatesAFileWithMode0600() async throws {
        let made = try await run("identity", "new", "--out", file)
        #expect(made.status == 0)
        #expect(made.errors == "")

        let text = try String(contentsOfFile: file, encoding: .utf8)
        let digits = text.trimmingCharacters(in: .newlines)
        #expect(text == digits + "\n")
        #expect(digits.count == 64)
        let key = try PrivateKey(bytes: try #require(bytes(hex: digits)))
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)

        #expect(made.field("public key") == "0x" + key.publicKey.hex)
        #expect(!made.output.contains(digits))
    }

    @Test func newDoesNotReplaceAFile() async throws {
        try write("precious", to: file)
        let refused = try await run("identity", "new", "--out", file)
        #expect(refused.status == 73)
        #expect(refused.failure == "identity file \(file) exists already: choose another name")
        #expect(refused.output == "")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
    }

    @Test func newInAMissingFolderFails() async throws {
        let refused = try await run("identity", "new", "--out", folder.path + "/missing/id.key")
        #expect(refused.status == 73)
        #expect(refused.failure?.contains("is the folder there") == true)
    }

    @Test func twoNewOnesDiffer() async throws {
        let first = try await run("identity", "new", "--out", file, "--json").json(Overview.self)
        let second = try await run("identity", "new", "--out", file + "2", "--json").json(Overview.self)
        #expect(first.publicKey != second.publicKey)
    }

    @Test func showAgreesWithNew() async throws {
        let made = try await run("identity", "new", "--out", file)
        let shown = try await run("identity", "show", "--identity", file)
        #expect(shown.status == 0)
        #expect(shown.output == made.output)

        let overview = try await run("identity", "show", "--identity", file, "--json").json(Overview.self)
        let key = try await run("identity", "show", "--identity", file, "--public-key")
        #expect(key.output == overview.publicKey + "\n")
        #expect(shown.field("public key") == overview.publicKey)
        #expect(shown.field("compressed") == overview.compressedPublicKey)
        #expect(shown.field("key hash") == overview.keyHash)
        #expect(shown.field("personal topic") == overview.personalTopic)
        #expect(shown.field("partitioned topic") == overview.partitionedTopic)
    }

    /// The shown values are those that a Status client derives from the key.
    @Test(arguments: StatusGoVectors.recorded.keys)
    func showDerivesAsClientsDo(recorded: StatusGoVectors.Key) async throws {
        let key = try KeyFile(in: folder, "recorded.key", key: recorded.pair())
        let overview = try await run("identity", "show", "--identity", key.path, "--json").json(Overview.self)
        #expect(
            overview
                == Overview(
                    publicKey: "0x" + hexString(recorded.publicKey.bytes), compressedPublicKey: "0x" + hexString(recorded.compressed.bytes),
                    keyHash: hexString(recorded.hashedPublicKey.bytes), personalTopic: recorded.personalTopic.contentTopic,
                    partitionedTopic: recorded.partitionedTopic.contentTopic))
    }

    @Test(arguments: [0o644, 0o640, 0o604, 0o620, 0o601])
    func othersMayNotReadIt(mode: Int) async throws {
        let key = try KeyFile(in: folder, "id.key")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key.path)
        let refused = try await run("identity", "show", "--identity", key.path)
        #expect(refused.status == 77)
        #expect(refused.failure?.hasSuffix("(mode 0\(String(mode, radix: 8))): chmod 600 \(key.path)") == true)
        #expect(refused.output == "")
    }

    @Test func aReadOnlyFileIsAccepted() async throws {
        let key = try KeyFile(in: folder, "id.key")
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: key.path)
        #expect(try await run("identity", "show", "--identity", key.path).field("public key") == key.publicKey)
    }

    @Test(arguments: [
        "", "\n", "not a key\n", String(repeating: "ab", count: 31), String(repeating: "ab", count: 33), String(repeating: "xy", count: 32),
        "0x" + String(repeating: "ab", count: 31), String(repeating: "0", count: 64), String(repeating: "f", count: 64),
    ])
    func invalidKeyFiles(text: String) async throws {
        try write(text, to: file)
        let refused = try await run("identity", "show", "--identity", file)
        #expect(refused.status == 65)
        #expect(refused.failure?.hasPrefix("identity file \(file) ") == true)
        #expect(refused.failure?.hasSuffix("restore the copy of the key; only a new node gets a new key, in another file") == true)
        if text.count > 8 { #expect(!refused.errors.contains(text.prefix(8))) }
    }

    @Test func aFileThatIsMissing() async throws {
        let refused = try await run("identity", "show", "--identity", file)
        #expect(refused.status == 65)
        #expect(refused.failure == "identity file \(file) is missing: make one with waku-push identity new --out \(file)")
    }
}
