import Foundation
import Testing

@testable import PushBench

@Suite("Floors and their report")
struct FloorTests {
    @Test func floorAndLimitAreSumsOfTheirParts() {
        let floor = Floor(items: [
            Floor.Item(.recover, times: 3, limit: 1, "signatures"), Floor.Item(.ecdh, "key"), Floor.Item(.upsert100, limit: 0, "row"),
            Floor.Item(.append100, times: 0, limit: 1, "row"),
        ])
        let cost = floor.measurement([
            .recover: FloorCost(cpuMicroseconds: 30), .ecdh: FloorCost(cpuMicroseconds: 29),
            .upsert100: FloorCost(cpuMicroseconds: 16, serverMicroseconds: 9), .append100: FloorCost(cpuMicroseconds: 2),
            .verify: FloorCost(cpuMicroseconds: 1000),
        ])
        #expect(cost.cpuMicroseconds == 135 && cost.limitMicroseconds == 61 && cost.serverMicroseconds == 9)
        #expect(cost.rate(cores: 2) == 2e6 / 135)
        #expect(FloorMeasurement().rate(cores: 2) == 0)
    }

    @Test func ratioIsThatOfTheFloorBeforeAndAfterEachRound() async throws {
        var floors = [100.0, 300, 200].makeIterator()
        var rounds = try await FloorRounds {
            var floor = FloorMeasurement()
            floor.add("recover", FloorCost(cpuMicroseconds: floors.next() ?? 0, serverMicroseconds: 20), "sender")
            return floor
        }
        #expect(rounds.count(for: 0.5, cores: 2) == 10_000)
        for cpu in [360.0, 230] {
            try await rounds.add(FullSpeed(rate: 1000, cpuMicroseconds: cpu, count: 10, unanswered: 0))
        }
        #expect(rounds.ratios == [0.5, 1])
        var result = BenchResult(name: "query")
        result.add(rounds)
        #expect(result.ratioToFloor == 0.75 && result.floorMicroseconds == 200 && result.cpuMicroseconds == 295 && result.messages == 20)
    }

    /// With the figures of one idle core from the beginning of the project, the floor of a registration is that of then: 262 µs, without
    /// recovering the signer of the Waku payload, which the node no longer does.
    @Test("A registration's floor is near to what was computed by hand")
    func registration() {
        let microseconds: [Primitive: Double] = [
            .ecdh: 29.6, .recover: 30.7, .sign: 19.9, .eciesOpen: 31, .eciesSeal: 46.6, .aesOpen: 0.5, .aesSeal: 0.5, .shake256: 0.39,
            .keccak65: 0.27, .keccak600: 1.26, .protobufDecode: 0.46, .protobufEncode: 0.21, .upsert100: 16, .sha256: 0.5, .select: 3,
        ]
        let costs = microseconds.mapValues { FloorCost(cpuMicroseconds: $0) }
        #expect(abs(Floor.registration.measurement(costs).cpuMicroseconds - 230) < 10)
        // The limit has no rows of tables; an update's no shared key either.
        #expect(abs(Floor.registration.measurement(costs).limitMicroseconds - 211) < 10)
        #expect(abs(Floor.update.measurement(costs).limitMicroseconds - 150) < 10)
    }

    @Test("A stale registration needs neither the grant nor the disk; nothing is answered without two signatures and a seal")
    func shape() {
        func count(_ primitive: Primitive, _ floor: Floor) -> Double {
            floor.items.filter { $0.primitive == primitive }.reduce(0) { $0 + $1.count }
        }
        #expect(count(.recover, .registration) == 2)
        #expect(count(.recover, .update) == 1)
        #expect(count(.recover, .stale) == 1)
        #expect(count(.upsert100, .stale) == 0)
        for floor in [Floor.registration, .update, .stale, .query, .request] {
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

    @Test("Unknown figures are null but present; parts have names")
    func json() throws {
        var result = BenchResult(name: "registration new")
        result.rate = 4000.123
        let floor = Floor(items: [Floor.Item(.recover, times: 2, limit: 1, "signatures")])
        let median = FloorMeasurement.median(of: [30, 34, 31].map { floor.measurement([.recover: FloorCost(cpuMicroseconds: $0)]) })
        (result.floorMicroseconds, result.limitMicroseconds, result.floor) = (
            median.cpuMicroseconds, median.limitMicroseconds, median.parts
        )
        let object = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(result)) as? [String: Any])
        #expect(object["name"] as? String == "registration new")
        #expect(object["rate"] as? Double == 4000)
        #expect(object["cpuMicroseconds"] is NSNull)
        #expect(object["ratioToFloor"] is NSNull)
        #expect(object["floorMicroseconds"] as? Double == 62)
        #expect(object["limitMicroseconds"] as? Double == 31)
        #expect(object["p50Microseconds"] == nil)
        let part = try #require((object["floor"] as? [[String: Any]])?.first)
        #expect(part["name"] as? String == "recover")
        #expect(part["count"] as? Double == 2)
    }

    @Test("Medians")
    func numbers() {
        #expect(median([]) == 0)
        #expect(median([3]) == 3)
        #expect(median([9, 1, 2]) == 2)
        #expect(median([4, 1, 2, 100]) == 3)
    }
}
