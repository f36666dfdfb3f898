import StatusProtocol
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Requests that wait for deliveries")
struct PendingRequestTableTests {
    private let first = DeliveryID(messageID: [1], key: key("one"))
    private let second = DeliveryID(messageID: [1], key: key("two"))
    private var table = PendingRequestTable()

    private static func key(_ installation: String) -> RegistrationKey {
        RegistrationKey(keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID(installation))
    }

    private func request(_ results: [PendingRequest.Entry.Result]) -> PendingRequest {
        PendingRequest(
            envelopeID: [1], sender: PrivateKey.generate().publicKey, pubsubTopic: .statusDefault, messageID: [2],
            entries: results.map { PendingRequest.Entry(publicKey: [3], installationID: InstallationID("x"), result: $0) })
    }

    private func time(_ second: Int64) -> Timestamp { Timestamp(rawValue: second * 1_000_000_000) }

    @Test("A request is complete when the last of its deliveries ended, with a result for each entry in order")
    mutating func complete() {
        table.add(request([.known(.wrongToken), .waiting(first), .known(nil), .waiting(second)]), deadline: time(2))
        #expect(table.resolve(second, as: .internalError).isEmpty)
        #expect(table.resolve(first, as: nil).map(\.errors) == [[.wrongToken, nil, nil, .internalError]])
        #expect(table.isEmpty)
    }

    @Test("Two requests, and two entries of one, may wait for the same delivery")
    mutating func shared() {
        table.add(request([.waiting(first), .waiting(first)]), deadline: time(2))
        table.add(request([.waiting(first)]), deadline: time(2))
        #expect(Set(table.resolve(first, as: nil).map(\.errors.count)) == [1, 2])
        #expect(table.isEmpty)
    }

    @Test("When time is up, what still waits is an internal error; what comes later changes nothing")
    mutating func timeIsUp() {
        table.add(request([.waiting(first), .waiting(second)]), deadline: time(2))
        table.add(request([.waiting(second)]), deadline: time(3))
        #expect(table.resolve(first, as: nil).isEmpty)
        #expect(table.nextDeadline == time(2))
        #expect(table.end(before: time(1)).isEmpty)
        #expect(table.end(before: time(2)).map(\.errors) == [[nil, .internalError]])
        #expect(table.end(before: time(2)).isEmpty)
        #expect(table.nextDeadline == time(3))
        #expect(table.resolve(second, as: nil).map(\.errors) == [[nil]])
        #expect(table.end(before: time(3)).isEmpty)
        #expect(table.nextDeadline == nil)
    }

    @Test("It tells what is waited for")
    mutating func awaited() {
        table.add(request([.waiting(first)]), deadline: time(2))
        table.add(request([.waiting(second), .waiting(first), .known(nil)]), deadline: time(2))
        #expect(Set(table.awaited) == [first, second])
        _ = table.resolve(first, as: nil)
        #expect(Set(table.awaited) == [second])
        _ = table.end(before: time(2))
        #expect(table.awaited.isEmpty)
    }

    @Test("Ten thousand that come and go leave nothing behind")
    mutating func many() {
        for round in Int64(1)...10_000 {
            table.add(request([.waiting(first)]), deadline: time(round))
            if round.isMultiple(of: 2) { #expect(!table.resolve(first, as: nil).isEmpty) }
            _ = table.end(before: time(round - 1))
        }
        #expect(table.nextDeadline == time(10_000))
        #expect(table.end(before: time(10_000)).isEmpty)
        #expect(table.isEmpty)
    }

    @Test("One request's end does not end another's wait for the same delivery")
    mutating func independent() {
        table.add(request([.waiting(first)]), deadline: time(1))
        table.add(request([.waiting(first)]), deadline: time(2))
        _ = table.end(before: time(1))
        #expect(table.resolve(first, as: nil).map(\.errors) == [[nil]])
    }

    @Test("A final answer is remembered in a byte an entry; one with an internal error is not final")
    func codes() {
        let errors: [PushNotificationReport.ErrorType?] = [nil, .unknown, .wrongToken, .notRegistered]
        #expect(AnswerCode.final(errors)?.map(AnswerCode.error) == errors)
        #expect(AnswerCode.final([nil, .internalError]) == nil)
        #expect(request([.known(nil), .waiting(first)]).finalCodes == nil)
    }
}

@Suite("Messages that were seen")
struct SeenMessagesTests {
    private func hash(_ number: Int) -> MessageHash {
        MessageHash(bytes: withUnsafeBytes(of: number, Array.init))
    }

    @Test("A message is news once")
    func once() {
        let seen = SeenMessages(capacity: 10)
        #expect(seen.insert(hash(1)))
        #expect(!seen.insert(hash(1)))
        #expect(seen.insert(hash(2)))
    }

    @Test("At least the last so many are known, and never more than twice as many are kept")
    func bounded() {
        let seen = SeenMessages(capacity: 10)
        for number in 0..<100 { #expect(seen.insert(hash(number))) }
        for number in 90..<100 { #expect(!seen.insert(hash(number))) }
        #expect(seen.insert(hash(0)))
    }
}

@Suite("Addresses to listen on")
struct SocketAddressTests {
    @Test("Host and port", arguments: [("127.0.0.1:9090", "127.0.0.1", 9090), ("[::1]:80", "::1", 80), ("localhost:0", "localhost", 0)])
    func parses(text: String, host: String, port: Int) {
        #expect(SocketAddress(parsing: text) == SocketAddress(host: host, port: port))
    }

    @Test("Anything else is none", arguments: ["", "9090", ":9090", "host:", "host:65536", "host:-1", "::1:80", "host:port"])
    func refuses(text: String) {
        #expect(SocketAddress(parsing: text) == nil)
    }
}
