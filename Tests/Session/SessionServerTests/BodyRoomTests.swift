import Core
import HTTPService
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
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

    @Test(arguments: [(20_000, 0), (10_000, 1)]) func aClientIsAskedForItsBodyOnlyWhereItHasRoom(count: Int, continued: Int) async throws {
        let channel = NIOAsyncTestingChannel()
        var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/")
        head.headerFields[.contentLength] = String(count)
        head.headerFields[try #require(HTTPField.Name("Expect"))] = "100-continue"
        let body = RequestBody(buffer: ByteBuffer(repeating: 1, count: count))
        let request = Request(head: head, body: body).continuing(on: channel)
        // Half of the room is less than the larger body.
        let byteCount = try await BodyReader(byteCount: 30_000).read(request, from: Self.network(1), upTo: 50_000) { result in
            if case .body(let bytes) = result { bytes.count } else { 0 }
        }
        #expect(byteCount == count * continued)
        #expect((try await channel.readOutbound(as: HTTPResponsePart.self) != nil) == (continued == 1))
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
