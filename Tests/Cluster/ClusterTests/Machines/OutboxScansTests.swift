@testable import Cluster
import Core
import Testing

@Suite struct OutboxScansTests {
    private var scans = OutboxScans(partitionCount: 5, at: .at(0))

    @Test mutating func allPartitionsAreScannedOnceASecond() {
        #expect(scans.partitions(noticed: [2], at: .at(0)) == [0, 1, 2, 3, 4])
        scans.scanned([0, 1, 2, 3, 4], deliveryCount: 5_000, at: .at(100))
        #expect(scans.partitions(noticed: [], at: .at(1_099)).isEmpty)
        #expect(scans.partitions(noticed: [], at: .at(1_100)).count == 5)
    }

    @Test mutating func scansOfNoticedPartitionsDoNotDelayTheNextOfAll() {
        scans.scanned([0, 1, 2, 3, 4], deliveryCount: 0, at: .at(0))
        #expect(scans.partitions(noticed: [3], at: .at(900)) == [3])
        scans.scanned([3], deliveryCount: 1, at: .at(900))
        #expect(scans.partitions(noticed: [], at: .at(1_000)).count == 5)
    }

    @Test mutating func aLargeOutboxIsScannedEveryTenSeconds() {
        scans.scanned([0, 1, 2, 3, 4], deliveryCount: 5_001, at: .at(0))
        #expect(scans.partitions(noticed: [1], at: .at(9_999)) == [1])
        #expect(scans.partitions(noticed: [1], at: .at(10_000)).count == 5)
    }
}
