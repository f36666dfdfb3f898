import Foundation
import Testing

@testable import PushBench

@Suite("Floors and what is told of them")
struct FloorTests {
    @Test("A floor is the sum of its parts, each as often as it is needed")
    func sum() {
        let floor = Floor(items: [
            Floor.Item(.recover, times: 3, "signatures"), Floor.Item(.ecdh, "key"), Floor.Item(.upsert100, "row"),
        ])
        let cost = floor.cost([
            .recover: FloorCost(cpuMicroseconds: 30, coreMicroseconds: 40), .ecdh: FloorCost(cpuMicroseconds: 29, coreMicroseconds: 31),
            .upsert100: FloorCost(cpuMicroseconds: 16, coreMicroseconds: 16),
            .verify: FloorCost(cpuMicroseconds: 1000, coreMicroseconds: 1000),
        ])
        #expect(cost == FloorCost(cpuMicroseconds: 135, coreMicroseconds: 167))
        #expect(cost.rate(cores: 2) == 2e6 / 167)
        #expect(FloorCost().rate(cores: 2) == 0)
    }

    @Test("SQLite's writer is one thread: more cores do not make it faster")
    func writer() {
        let floor = Floor(items: [Floor.Item(.select, "row"), Floor.Item(.upsert100, times: 2, "two rows")])
        let cost = floor.cost([
            .select: FloorCost(cpuMicroseconds: 10, coreMicroseconds: 10),
            .upsert100: FloorCost(cpuMicroseconds: 12, coreMicroseconds: 12, writerMicroseconds: 12),
        ])
        #expect(cost.rate(cores: 1) == 1e6 / 34)
        #expect(cost.rate(cores: 2) == 1e6 / 24)
        #expect(cost.rate(cores: 8) == 1e6 / 24)
    }

    /// With the figures that were found for one idle core when the project began, a registration is what was found then: 262 µs, without the
    /// signer of the Waku payload, which is not recovered any more.
    @Test("A registration's floor is near to what was computed by hand")
    func registration() {
        let microseconds: [Primitive: Double] = [
            .ecdh: 29.6, .recover: 30.7, .sign: 19.9, .eciesOpen: 31, .eciesSeal: 46.6, .aesOpen: 0.5, .aesSeal: 0.5, .shake256: 0.39,
            .keccak65: 0.27, .keccak600: 1.26, .protobufDecode: 0.46, .protobufEncode: 0.21, .upsert100: 16, .sha256: 0.5, .select: 3,
        ]
        let costs = microseconds.mapValues { FloorCost(cpuMicroseconds: $0, coreMicroseconds: $0) }
        #expect(abs(Floor.registration.cost(costs).cpuMicroseconds - 230) < 10)
    }

    @Test("A stale registration needs neither the grant nor the disk; nothing is answered without two signatures and a seal")
    func shape() {
        func count(_ primitive: Primitive, _ floor: Floor) -> Double {
            floor.items.filter { $0.primitive == primitive }.reduce(0) { $0 + $1.count }
        }
        #expect(count(.recover, .registration) == 2)
        #expect(count(.recover, .stale) == 1)
        #expect(count(.upsert100, .stale) == 0)
        for floor in [Floor.registration, .stale, .query, .request] {
            #expect(count(.sign, floor) == 2)
            #expect(count(.eciesSeal, floor) == 1)
            for item in floor.items { #expect(!item.reason.isEmpty) }
        }
        #expect(count(.eciesOpen, .query) == 0)
    }

    @Test("Version 0.1: everything is encrypted to the node and signed twice; an acknowledgement is sealed with the sender's key")
    func v01() {
        func count(_ primitive: Primitive, _ floor: Floor) -> Double {
            floor.items.filter { $0.primitive == primitive }.reduce(0) { $0 + $1.count }
        }
        for floor in [Floor.v01Register, .v01Query, .v01Request] {
            #expect(count(.eciesOpen, floor) == 1 && count(.sign, floor) == 2)
            for item in floor.items { #expect(!item.reason.isEmpty) }
        }
        #expect(count(.recover, .v01Register) == 2 && count(.recover, .v01Query) == 1 && count(.recover, .v01Request) == 1)
        #expect(count(.eciesSeal, .v01Register) == 1 && count(.eciesSeal, .v01Query) == 1 && count(.eciesSeal, .v01Request) == 0)
        #expect(count(.upsert100, .v01Query) == 0)
    }

    @Test("What is not known is null, and always there; parts are told by name")
    func json() throws {
        var result = BenchResult(name: "registration new")
        result.rate = 4000.123
        result.describe(
            Floor(items: [Floor.Item(.recover, times: 2, "signatures")]),
            costs: [
                [.recover: FloorCost(cpuMicroseconds: 30, coreMicroseconds: 50)],
                [.recover: FloorCost(cpuMicroseconds: 34, coreMicroseconds: 50)],
                [.recover: FloorCost(cpuMicroseconds: 31, coreMicroseconds: 90)],
            ], cores: 2)
        let object = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(result)) as? [String: Any])
        #expect(object["name"] as? String == "registration new")
        #expect(object["rate"] as? Double == 4000)
        #expect(object["cpuMicroseconds"] is NSNull)
        #expect(object["ratioToFloor"] is NSNull)
        #expect(object["floorMicroseconds"] as? Double == 62)
        #expect(object["floorRate"] as? Double == 20_000)
        #expect(object["p50Microseconds"] == nil)
        let part = try #require((object["floor"] as? [[String: Any]])?.first)
        #expect(part["name"] as? String == "recover")
        #expect(part["count"] as? Double == 2)
    }

    @Test("Middles and slopes")
    func numbers() {
        #expect(median([]) == 0)
        #expect(median([3]) == 3)
        #expect(median([9, 1, 2]) == 2)
        #expect(median([4, 1, 2, 100]) == 3)
        #expect(slope([(0, 5)]) == nil)
        #expect(slope([(1, 5), (1, 9)]) == nil)
        #expect(slope([(0, 1), (1, 3), (2, 5)]) == 2)
        #expect(slope([(0, 7), (10, 7)]) == 0)
    }
}
