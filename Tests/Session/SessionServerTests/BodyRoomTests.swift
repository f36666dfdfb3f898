import Core
import HTTPService
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import struct SessionProtocol.OnionRequest
import TestSupport
import Testing

@testable import SessionServer

@Suite("Session: room for large bodies") struct BodyRoomTests {
    private static func network(_ number: Int) -> SenderNetwork { SenderNetwork(IPAddress("10.0.\(number).1")) }

    @Test func aNetworkAloneHasHalfAndAFurtherOneStillFindsRoom() {
        var room = BodyRoom<Int>(byteCount: 1000)
        #expect((0..<5).map { room.take(100, of: Self.network(1), $0) } == Array(repeating: .held, count: 5))
        #expect(room.take(100, of: Self.network(1), 5) == .waiting)
        // A third of the room for each of two that ask for as much as they get.
        #expect(room.take(100, of: Self.network(2), 6) == .held)
        #expect(room.take(100, of: Self.network(2), 7) == .held)
        #expect(room.take(100, of: Self.network(2), 8) == .waiting)
        #expect(room.take(100, of: Self.network(3), 9) == .held)
    }

    @Test func waitingBodiesOfANetworkAreHeldInOrder() {
        var room = BodyRoom<Int>(byteCount: 300)
        #expect(room.take(100, of: Self.network(1), 0) == .held)
        // Smaller ones do not overtake.
        #expect(room.take(150, of: Self.network(1), 1) == .waiting)
        #expect(room.take(10, of: Self.network(1), 2) == .waiting)
        #expect(room.release(100, of: Self.network(1)) == [1])
        #expect(room.release(150, of: Self.network(1)) == [2])
        #expect(room.release(10, of: Self.network(1)) == [])
        #expect(room.take(150, of: Self.network(1), 3) == .held)
    }

    @Test func theNetworkThatHoldsLeastIsNext() {
        var room = BodyRoom<Int>(byteCount: 600)
        for number in 0..<3 { #expect(room.take(100, of: Self.network(1), number) == .held) }
        #expect(room.take(100, of: Self.network(2), 3) == .held)
        #expect(room.take(100, of: Self.network(1), 4) == .waiting)
        #expect(room.take(100, of: Self.network(2), 5) == .waiting)
        #expect(room.release(100, of: Self.network(1)) == [5])
    }

    @Test func linesAreBoundedAndNoBodyIsLargerThanHalf() {
        var room = BodyRoom<Int>(byteCount: 1000, limits: .init(networkCount: 2, totalCount: 3))
        #expect(room.take(501, of: Self.network(1), 0) == .refused)
        #expect(room.take(500, of: Self.network(1), 1) == .held)
        let decisions = (2..<5).map { room.take(500, of: Self.network(1), $0) }
        #expect(decisions == [.waiting, .waiting, .refused])
        #expect(room.take(400, of: Self.network(2), 5) == .waiting)
        #expect(room.take(400, of: Self.network(3), 6) == .refused)
        // A body that finds room needs no place in a line.
        #expect(room.take(250, of: Self.network(3), 7) == .held)
    }

    @Test func bodiesThatAreHeldGrowWhileTheyHaveRoom() {
        var room = BodyRoom<Int>(byteCount: 1000)
        #expect(room.take(100, of: Self.network(1), 0) == .held)
        #expect(room.take(300, of: Self.network(1), 1) == .held)
        #expect(room.take(200, of: Self.network(1), 2) == .waiting)
        // Its line is no obstacle, the room is.
        #expect([100, 1].map { room.grow(by: $0, of: Self.network(1)) } == [true, false])
        #expect(room.release(200, of: Self.network(1)) == [2])
    }

    @Test func tenNetworksLeaveAnEighthOfTheRoom() {
        var room = BodyRoom<Int>(byteCount: 24 << 20, limits: .init(freeFactor: 7))
        var held = 0
        for number in 1...10 { while room.take(100_000, of: Self.network(number), 0) == .held { held += 100_000 } }
        #expect(held <= 21 << 20)
        #expect((0..<3).map { room.take(100_000, of: Self.network(11), $0) } == Array(repeating: .held, count: 3))
    }

    @Test func theLargestOnionRequestHasRoomBesideOthers() {
        var room = BodyRoom<Int>(byteCount: 24 << 20, limits: .init(freeFactor: 7))
        #expect(room.take(100_000, of: Self.network(1), 0) == .held)
        #expect(room.take(OnionRequest.maximumByteCount, of: Self.network(2), 0) == .held)
        #expect(room.take(4 << 20, of: Self.network(3), 0) == .waiting)
        #expect(room.take(1 << 20, of: Self.network(4), 0) == .held)
    }

    private static func request(_ byteCount: Int, _ body: RequestBody, on channel: NIOAsyncTestingChannel) throws -> Request {
        var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/")
        head.headerFields[.contentLength] = String(byteCount)
        head.headerFields[try #require(HTTPField.Name("Expect"))] = "100-continue"
        return Request(head: head, body: body).continuing(on: channel)
    }

    @Test(arguments: [(60_000, 0), (40_000, 1)]) func aClientIsAskedForItsBodyUnlessItIsTooLarge(count: Int, continued: Int) async throws {
        let channel = NIOAsyncTestingChannel()
        let request = try Self.request(count, RequestBody(buffer: ByteBuffer(repeating: 1, count: count)), on: channel)
        let byteCount = try await BodyReader(byteCount: 400_000).read(request, from: Self.network(1), upTo: 50_000) { result in
            if case .body(let bytes) = result { bytes.count } else { 0 }
        }
        #expect(byteCount == count * continued)
        #expect((try await channel.readOutbound(as: HTTPResponsePart.self) != nil) == (continued == 1))
    }

    /// A head of 150 bytes announces any size.
    @Test func aBodyThatIsOnlyAnnouncedTakesNoRoom() async throws {
        let reader = BodyReader(byteCount: 800_000)
        var readings: [Task<Void, any Error>] = []
        defer { for reading in readings { reading.cancel() } }
        for number in 1...7 {
            let (channel, stream) = (NIOAsyncTestingChannel(), RequestBody.makeStream())
            let request = try Self.request(90_000, stream.0, on: channel)
            readings.append(
                Task {
                    try await reader.read(request, from: Self.network(number), upTo: 100_000) { _ in }
                    withExtendedLifetime(stream.1) {}
                })
            // Once it was asked for the body, it has what room it gets before.
            _ = try await channel.waitForOutboundWrite(as: HTTPResponsePart.self)
        }
        let body = RequestBody(buffer: ByteBuffer(repeating: 1, count: 90_000))
        let request = try Self.request(90_000, body, on: NIOAsyncTestingChannel())
        let isRead = Flag()
        readings.append(
            Task {
                try await reader.read(request, from: Self.network(8), upTo: 100_000) { result in
                    if case .body = result { isRead.raise() }
                }
            })
        try await eventually { isRead.isRaised }
    }

    @Test(arguments: 1...5) func heldBodiesFitAndAllWaitingOnesAreHeldInTheEnd(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var room = BodyRoom<Int>(byteCount: 10_000)
        var bodies: [(network: SenderNetwork, byteCount: Int)] = []
        var (held, answered): (Set<Int>, Set<Int>) = ([], [])
        func release(_ number: Int) {
            held.remove(number)
            answered.insert(number)
            held.formUnion(room.release(bodies[number].byteCount, of: bodies[number].network))
        }
        for number in 0..<2000 {
            bodies.append((Self.network(Int.random(in: 0..<5, using: &generator)), Int.random(in: 1...5000, using: &generator)))
            switch room.take(bodies[number].byteCount, of: bodies[number].network, number) {
            case .held: held.insert(number)
            case .waiting: break
            case .refused: answered.insert(number)
            }
            #expect(held.reduce(0) { $0 + bodies[$1].byteCount } <= 10_000)
            if Bool.random(using: &generator), let number = held.min() { release(number) }
        }
        while let number = held.min() { release(number) }
        #expect(answered.count == bodies.count)
    }
}
