import Core
import Delivery
import RateLimits
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server

/// The parts in which a request is committed, by the number of devices.
@Suite("Version 0.1: parts of requests")
struct V01RequestPartsTests {
    private let fixture: V01StoreFixture
    private let server = PrivateKey.generate().publicKey

    init() throws {
        fixture = try V01StoreFixture()
    }

    /// Registered accounts with these numbers of devices.
    private func accounts(_ deviceCounts: [Int]) async throws -> [V01Account] {
        var accounts: [V01Account] = []
        for count in deviceCounts {
            let devices = (0..<count).map { V01Account.device("device \($0)", token: "token \(accounts.count) \($0)") }
            let account = V01Account(of: server, devices: devices)
            #expect(try await fixture.take(account.register(version: 1), of: account) == nil)
            accounts.append(account)
        }
        return accounts
    }

    /// Decides all parts. Returns the notifications of each.
    private func decide(_ accounts: [V01Account]) async throws -> (parts: [Int], last: V01PendingRequest) {
        let request = V01.Request(requests: accounts.map { $0.entry() }, message: [1], messageID: [1], ackKey: [])
        let handler = V01RequestHandler(records: fixture.records, limits: V01Limits(.none), apnsTopic: "")
        var pending = V01PendingRequest(of: request)
        var parts: [Int] = []
        while pending.decidedCount < request.requests.count, parts.count < 100 {
            let command = handler.change(
                request, after: pending, key: [1], expires: Timestamp(rawValue: 1 << 60), times: nil, at: Timestamp(rawValue: 1))
            let outcome = try await fixture.store.commit(command)
            parts.append(outcome.queued.count)
            #expect(outcome.queued.count <= pending.size)
            pending = outcome.pending
        }
        return (parts, pending)
    }

    @Test(
        "A request with few entries has 8 devices beside other messages, and takes turns for more",
        arguments: [
            ([2, 2, 2, 2], [8]), ([2, 2, 2, 2, 2], [8, 2]), ([9], [0, 9]), ([64, 64, 64], [0, 64, 64, 64]), ([8, 1, 64], [8, 1, 0, 64]),
        ] as [([Int], [Int])])
    func smallRequests(deviceCounts: [Int], parts: [Int]) async throws {
        let decided = try await decide(try await accounts(deviceCounts))
        #expect(decided.parts == parts)
        #expect(decided.last.deliveries.count == deviceCounts.reduce(0, +))
        #expect((decided.last.parts == nil) == (parts.count == 1))
    }

    @Test("Parts of a large request have at most 64 devices, or one record")
    func largeRequests() async throws {
        let counts = Array(repeating: 1, count: 5) + [64] + Array(repeating: 1, count: 4) + Array(repeating: 30, count: 5)
        let decided = try await decide(try await accounts(counts))
        #expect(decided.parts.prefix(3) == [5, 0, 64] && decided.parts.dropFirst(2).allSatisfy { 1...64 ~= $0 })
        #expect(decided.parts.reduce(0, +) == 223 && decided.last.deliveries.count == 223)
    }

    /// So that the parts of several requests fit into a transaction.
    @Test("A part has room for two devices of each entry, and for more once accounts have more")
    func sizes() async throws {
        let entries = try await accounts([1]).map { $0.entry() }
        let sizes = [8, 9, 31, 32, 1_000].map { count in
            V01PendingRequest(
                of: V01.Request(requests: Array(repeating: entries[0], count: count), message: [1], messageID: [1], ackKey: [])
            ).size
        }
        #expect(sizes == [8, 18, 62, 64, 64])
        let nine = try await decide(try await accounts(Array(repeating: 2, count: 9)))
        #expect(nine.parts == [18] && nine.last.size == 18)
        let more = try await decide(try await accounts(Array(repeating: 3, count: 9)))
        #expect(more.parts == [18, 9] && more.last.size == 36)
        let rest = try await decide(try await accounts(Array(repeating: 2, count: 5)))
        #expect(rest.parts == [8, 2] && rest.last.size == 2)
    }

    @Test("An access token that selects no record is reported from any part")
    func badToken() async throws {
        var accounts = try await accounts([64, 64])
        accounts.insert(V01Account(of: server), at: 1)
        let decided = try await decide(accounts)
        #expect(decided.parts.reduce(0, +) == 128 && decided.parts.allSatisfy { $0 <= 64 })
        #expect(decided.last.verdict([:]).error == .badToken)
    }
}
