import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

@Suite struct StorageServerTests {
    private let vectors = SessionVectors.derived

    // MARK: Swarms

    @Test func positionsAreThoseOfTheVectors() throws {
        for (account, position) in vectors.swarmSpace {
            let account = try #require(bytes(hex: account).flatMap { AccountID($0) })
            #expect(account.swarmPosition == UInt64(position.dropFirst(2), radix: 16))
        }
    }

    @Test func accountsKeepTheirBytes() throws {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<100 {
            let bytes = random.bytes(33)
            let account = try #require(AccountID(bytes))
            #expect(account.bytes == bytes && account.key == Array(bytes[1...]) && account.hex == hexString(bytes))
        }
        #expect(AccountID([UInt8](repeating: 5, count: 32)) == nil && AccountID([UInt8](repeating: 5, count: 34)) == nil)
    }

    @Test func nearestSwarmIsChosen() {
        let ring = SwarmRing([0x10, 0x20, 1 << 63])
        #expect(ring.swarm(at: 0x17) == 0x10)
        #expect(ring.swarm(at: 0x19) == 0x20)
        #expect(ring.swarm(at: 0x20) == 0x20)
        #expect(ring.swarm(at: 0x18) == 0x10, "the lower on a tie")
        #expect(ring.swarm(at: .max) == 0x10, "around the end")
        #expect(ring.swarm(at: 0) == 0x10)
        #expect(SwarmRing([]).swarm(at: 5) == nil)
        #expect(SwarmRing([7]).swarm(at: .max) == 7)
    }

    @Test func lowerSwarmWinsATieAroundTheEnd() {
        // 2^64 − 4 and 4 are both 4 away from 0.
        #expect(SwarmRing([UInt64.max - 3, 4]).swarm(at: 0) == 4)
        #expect(SwarmRing([UInt64.max - 3, 1 << 40]).swarm(at: 2) == UInt64.max - 3)
    }

    @Test func choiceIsThatOfASearchThroughAll() {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<300 {
            let ids = (0..<Int.random(in: 1...12, using: &random)).map { _ in random.next() }
            let ring = SwarmRing(ids)
            for _ in 0..<20 {
                let position = random.next()
                let nearest = ids.min { left, right in
                    let (a, b) = (min(left &- position, position &- left), min(right &- position, position &- right))
                    return a == b ? left < right : a < b
                }
                #expect(ring.swarm(at: position) == nearest)
            }
        }
    }

    // MARK: Lists

    private let key = String(repeating: "ab", count: 32)

    private func file(_ text: String) throws -> StorageServerList { try StorageServerList(parsingFile: Array(text.utf8)) }
    private func oxend(_ text: String) throws -> StorageServerList { try StorageServerList(parsingOxend: Array(text.utf8)) }

    @Test func fileIsRead() throws {
        let list = try file(#"[{"pubkey_x25519":"\#(key)","ip":"127.0.0.1","port":22,"swarm_id":"00000000000000ff"}]"#)
        #expect(list.servers == [StorageServer(publicKey: [UInt8](repeating: 0xAB, count: 32), ip: "127.0.0.1", port: 22, swarm: 255)])
        #expect(list.servers.first?.endpoint == "tcp://127.0.0.1:22")
        #expect(try file("[]").servers.isEmpty)
    }

    @Test func addressOfIPv6IsInBrackets() {
        #expect(StorageServer(publicKey: [], ip: "::1", port: 5, swarm: 0).endpoint == "tcp://[::1]:5")
    }

    @Test func serversWithoutAddressPortOrSwarmAreLeftOut() throws {
        func entry(_ ip: String, _ port: Int, _ swarm: String) -> String {
            #"{"pubkey_x25519":"\#(key)","ip":"\#(ip)","port":\#(port),"swarm_id":"\#(swarm)"}"#
        }
        let zero = "0000000000000000"
        let list = try file(
            "["
                + [entry("", 1, zero), entry("0.0.0.0", 1, zero), entry("1.2.3.4", 0, zero), entry("1.2.3.4", 1, "ffffffffffffffff")]
                .joined(separator: ",") + "]")
        #expect(list.servers.isEmpty && list.leftOutCount == 4)
    }

    @Test(arguments: [
        "", "{}", "[{}]", "[5]", "null",
        #"[{"pubkey_x25519":"ab","ip":"1.2.3.4","port":1,"swarm_id":"0000000000000001"}]"#,
        #"[{"pubkey_x25519":"KEY","ip":"example.org","port":1,"swarm_id":"0000000000000001"}]"#,
        #"[{"pubkey_x25519":"KEY","ip":"1.2.3.4","port":65536,"swarm_id":"0000000000000001"}]"#,
        #"[{"pubkey_x25519":"KEY","ip":"1.2.3.4","port":1,"swarm_id":"1"}]"#,
        #"[{"pubkey_x25519":"KEY","ip":"1.2.3.4","port":1,"swarm_id":"+000000000000001"}]"#,
        #"[{"pubkey_x25519":"KEY","ip":"1.2.3.4","port":1,"swarm_id":1}]"#,
    ])
    func brokenFileIsRefused(text: String) {
        #expect(throws: StorageServerList.Malformed.self) { try file(text.replacing("KEY", with: key)) }
    }

    @Test func oxendsAnswerIsRead() throws {
        let list = try oxend(
            #"{"service_node_states":[{"pubkey_x25519":"\#(key)","public_ip":"10.0.0.1","storage_lmq_port":9,"swarm_id":18446744073709551614},"#
                + #"{"pubkey_x25519":"","public_ip":"0.0.0.0","storage_lmq_port":0,"swarm_id":18446744073709551615},"#
                + #"{"pubkey_x25519":"odd","public_ip":"10.0.0.1","storage_lmq_port":9,"swarm_id":1}],"block_hash":"aa","height":5}"#)
        #expect(list.servers.map(\.swarm) == [.max - 1] && list.leftOutCount == 2)
        #expect(throws: StorageServerList.Malformed.self) { try oxend(#"{"height":5}"#) }
    }

    @Test func secondServerWithAKeyIsLeftOut() throws {
        let entry = #"{"pubkey_x25519":"\#(key)","ip":"127.0.0.1","port":22,"swarm_id":"00000000000000ff"}"#
        #expect(try file("[\(entry),\(entry)]").servers.count == 1)
    }

    // MARK: monitor.messages

    @Test func entryOfASessionID() throws {
        let form = try RequestSample.sessionID().subscription()
        let entry = MonitorEntry(form.authority, namespaces: form.namespaces, wantsData: form.wantsData)
        let vector = vectors.sessionId
        let expected =
            Array("d1:P32:".utf8) + vector.sessionEd25519.bytes + Array("1:di1e1:nli-400ei0ei1ei2ei17ee1:s64:".utf8)
            + vector.signature.bytes
            + Array("1:ti1677520760ee".utf8)
        #expect(entry.bytes == expected)
    }

    @Test func entryOfASubaccount() throws {
        let form = try RequestSample.subaccount(vectors.subaccount).subscription()
        let entry = MonitorEntry(form.authority, namespaces: form.namespaces, wantsData: form.wantsData)
        let fields = try #require(BencodeValue(parsing: entry.bytes[...], maximumValueCount: 20).dictionary)
        #expect(fields["S"]?.bytes == vectors.subaccount.subaccountSig.bytes[...])
        #expect(fields["T"]?.bytes == vectors.subaccount.subaccount.bytes[...])
        #expect(fields["p"]?.bytes == vectors.group03.pubkey.bytes[...])
        #expect(fields["P"] == nil && fields["d"]?.integer == 0)
    }

    @Test func entryOfASubkeyHasNeitherSNorT() throws {
        let tag = RequestSample.quoted(String(repeating: "01", count: 32))
        let form = try RequestSample.group().with("subkey_tag", tag).subscription()
        let entry = MonitorEntry(form.authority, namespaces: form.namespaces, wantsData: form.wantsData)
        let fields = try #require(BencodeValue(parsing: entry.bytes[...], maximumValueCount: 20).dictionary)
        #expect(fields["S"] == nil && fields["T"] == nil && fields["p"] != nil)
    }

    @Test func bodyIsOneEntryOrAList() throws {
        let form = try RequestSample.group().subscription()
        let entry = MonitorEntry(form.authority, namespaces: form.namespaces, wantsData: form.wantsData)
        #expect(MonitorEntry.body(of: []) == nil)
        #expect(MonitorEntry.body(of: [entry]) == entry.bytes)
        #expect(MonitorEntry.body(of: [entry, entry]) == [0x6C] + entry.bytes + entry.bytes + [0x65])
    }

    @Test func repliesAreRead() {
        func read(_ text: String, _ count: Int) -> [MonitorOutcome]? { MonitorOutcome.outcomes(parsing: Array(text.utf8), count: count) }
        #expect(read("d7:successi1ee", 1) == [.success])
        #expect(read("ld7:successi1eed7:errcodei6e5:error3:abcee", 2) == [.success, .refused(.wrongSwarm)])
        #expect(read("ld7:successi1eee", 1) == [.success])
        #expect(read("ld7:successi1eee", 2) == nil)
        #expect(read("d7:successi1ee", 2) == nil)
        #expect(read("de", 1) == nil)
        #expect(read("d7:successi0ee", 1) == nil)
        #expect(read("i1e", 1) == nil)
        #expect(read("nothing", 1) == nil)
        #expect(read("d7:errcodei-9ee", 1)?.first == .refused(.other))
        #expect(MonitorRefusal.allCases.map(\.code) == [1, 2, 3, 4, 5, 6, 0])
        #expect(MonitorRefusal.allCases.allSatisfy { MonitorRefusal(code: $0.code) == $0 })
    }

    @Test func mutatedListsAndRepliesNeverTrap() {
        var random = SeededGenerator(seed: 4)
        let list = Array(#"[{"pubkey_x25519":"\#(key)","ip":"127.0.0.1","port":22,"swarm_id":"00000000000000ff"}]"#.utf8)
        let states = Array(
            #"{"service_node_states":[{"pubkey_x25519":"\#(key)","public_ip":"10.0.0.1","storage_lmq_port":9,"swarm_id":5}]}"#.utf8)
        for _ in 0..<5000 {
            _ = try? StorageServerList(parsingFile: random.damaged(list))
            _ = try? StorageServerList(parsingOxend: random.damaged(states))
            _ = MonitorOutcome.outcomes(parsing: random.damaged(Array("ld7:successi1eed7:errcodei6e5:error3:abcee".utf8)), count: 2)
        }
    }
}
