import ArgumentParser
import Core
import LibP2P
import RateLimits
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto
import WakuP2P

@testable import WakuPushCommands

/// The options of libp2p and of limits, parsed and made into settings.
struct OptionGroupTests {
    private func peers(_ arguments: String...) throws -> PeerOptions {
        try withEnvironment([:]) { try PeerOptions.parse(arguments) }
    }

    private func network(_ arguments: String...) throws -> NetworkOptions {
        try withEnvironment([:]) { try NetworkOptions.parse(arguments) }
    }

    private func limits(_ arguments: String...) throws -> Limits {
        try withEnvironment([:]) {
            let failures = ConfigurationFailures()
            let limits = try LimitOptions.parse(arguments).limits(failures)
            if let first = failures.failures.first { throw first }
            return limits
        }
    }

    private func failure(_ body: () throws -> Void) -> CommandFailure? {
        do {
            try body()
            return nil
        } catch {
            return error as? CommandFailure
        }
    }

    // MARK: libp2p

    @Test func listenAddresses() throws {
        #expect(try peers().addresses(hasLoopback: true).map(\.description) == [PeerOptions.loopback])
        #expect(try peers().addresses(hasLoopback: false) == [])
        #expect(try peers("--listen", "off").addresses(hasLoopback: true) == [])
        let two = ["/ip4/0.0.0.0/tcp/60000", "/ip6/::/tcp/60000"]
        #expect(try peers("--listen", two[0], "--listen", two[1]).addresses(hasLoopback: false).map(\.description) == two)
        for text in ["60000", "/dns4/localhost/tcp/1", "/ip4/127.0.0.1"] {
            let failure = failure { [options = try peers("--listen", text)] in _ = try options.addresses(hasLoopback: false) }
            #expect(failure?.code == .usage, "\(text)")
            #expect(failure?.message.hasPrefix("--listen \(text) is not an address to listen on") == true)
        }
    }

    @Test func exemptNetworks() throws {
        let ranges = try peers("--exempt-network", "loopback", "--exempt-network", "10.0.0.0/8").exemptAddresses()
        #expect(ranges == AddressRange.loopback + [try #require(AddressRange("10.0.0.0/8"))])
        #expect(try peers("--exempt-network", "private").exemptAddresses() == AddressRange.privateNetworks)
        #expect(try peers().exemptAddresses() == [])
        let failure = failure { [options = try peers("--exempt-network", "10.0.0.0/33")] in _ = try options.exemptAddresses() }
        #expect(failure?.code == .usage)
        #expect(failure?.message.contains("--exempt-network 10.0.0.0/33 is not an address range") == true)
    }

    @Test func fleets() throws {
        let lists = try network("--fleet", "status.prod").nodeLists()
        #expect(lists.map(\.domain) == ["boot.prod.status.nodes.status.im", "store.prod.status.nodes.status.im"])
        let url = try #require(Fleet.lists["status.staging"]?.first)
        #expect(try network("--fleet", url).nodeLists().map(\.description) == [url])
        #expect(try network().nodeLists() == [])
        for arguments in [["--fleet", "status.none"], ["--peer-count", "0"], ["--peer-count", "101"]] {
            let options = try withEnvironment([:]) { try NetworkOptions.parse(arguments) }
            let failure = failure { _ = try options.nodeLists() }
            #expect(failure?.code == .usage)
            #expect(failure?.message.hasPrefix(arguments[0]) == true)
        }
    }

    @Test func theNodeKeyIsInTheDataFolderUnlessNamed() throws {
        #expect(try peers().keyFile(in: "data") == "data/node.key")
        #expect(try peers("--node-key", "k").keyFile(in: "data") == "k")
        #expect(
            try withEnvironment(["WAKU_PUSH_NODE_KEY": "e"]) { try PeerOptions.parse([]).keyFile(in: "data") } == "e")
    }

    // MARK: Gorush

    @Test(arguments: ["gorush", "gorush-ca", "gorush-user", "gorush-password-file", "gorush-token-file", "gorush-header"])
    func aServerIsNamedByTheCommandLineOrTheEnvironment(option: String) throws {
        #expect(try withEnvironment([:]) { try GorushOptions.parse([]).namesServer } == false)
        #expect(try withEnvironment([:]) { try GorushOptions.parse(["--\(option)", "x"]).namesServer })
        #expect(try withEnvironment([Environment.name(of: option): "x"]) { try GorushOptions.parse([]).namesServer })
    }

    // MARK: Limits

    @Test func limitsChangeOneByOne() throws {
        #expect(try limits() == Limits.standard)
        var expected = Limits.standard
        try expected.set("requests-by-sender=5/s burst 50")
        try expected.set("queries=off")
        #expect(expected != Limits.standard)
        #expect(try limits("--limit", "requests-by-sender=5/s burst 50", "--limit", "queries=off") == expected)
        let failure = failure { _ = try limits("--limit", "wishes=1/s") }
        #expect(failure?.code == .usage)
        #expect(failure?.message.hasPrefix("--limit: there is no limit wishes") == true)
    }

    @Test func keyListsContainKeysAndHashes() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/keys"
        let (key, other) = (PrivateKey.generate().publicKey, PrivateKey.generate().publicKey)
        let lines = ["# nobody", "", "0x\(key.hex) # a key", "  \(KeyHash(of: other).hex)", ""]
        for lineEnd in ["\n", "\r\n"] {
            try write(lines.joined(separator: lineEnd), to: path)
            let limits = try limits("--allow-keys", path, "--deny-keys", path)
            #expect(limits.allowed == [KeyHash(of: key).bytes, KeyHash(of: other).bytes])
            #expect(limits.denied == [KeyHash(of: key).bytes, KeyHash(of: other).bytes])
        }

        try write("\(key.hex)\nnonsense\n", to: path)
        let failure = failure { _ = try self.limits("--deny-keys", path) }
        #expect(failure?.code == .data)
        #expect(failure?.message == "\(path):2: not a public key or its hash in hexadecimal digits")
    }
}
