@testable import Cluster
import Testing

/// Which messages and servers are admitted.
@Suite struct AdmissionTests {
    private let noon: Int64 = 500_000 * 3600

    // MARK: Claims

    @Test func messagesOfTheLastTwoHoursAreClaimedInTheirOwnHour() {
        let window = ClaimWindow(firstHour: 0)
        #expect(window.verdict(timestamp: noon, now: noon) == .claim(500_000))
        #expect(window.verdict(timestamp: noon - 1, now: noon) == .claim(499_999))
        #expect(window.verdict(timestamp: noon - 7199, now: noon) == .claim(499_998))
        #expect(window.verdict(timestamp: noon - 7200, now: noon) == .tooOld)
        #expect(window.verdict(timestamp: nil, now: noon) == .tooOld)
        #expect(window.verdict(timestamp: noon + 3599, now: noon) == .claim(500_000))
        #expect(window.verdict(timestamp: noon + 3600, now: noon) == .fromTheFuture)
        #expect(ClaimWindow.hour(of: -1) == -1)
    }

    /// Maintenance has failed for more than an hour.
    @Test func messagesOfAnHourWithoutPartitionAreHandledWithoutAClaim() {
        let window = ClaimWindow(firstHour: 0, lastHour: 499_999)
        #expect(window.verdict(timestamp: noon - 1, now: noon) == .claim(499_999))
        #expect(window.verdict(timestamp: noon, now: noon) == .fromTheFuture)
    }

    @Test func everyMessageThatCanBeClaimedHasAPartition() {
        var window = ClaimWindow(firstHour: 0)
        for minute in 0..<600 as Range<Int64> {
            let now = noon + minute * 60
            let (create, dropBefore) = window.maintain(now: now)
            for age in stride(from: -4000, through: 8000, by: 50) as StrideThrough<Int64> {
                guard case .claim(let hour) = window.verdict(timestamp: now - age, now: now) else { continue }
                #expect(create.contains(hour) && hour >= dropBefore)
            }
            // The partition is created well before its first message.
            #expect(create.upperBound > ClaimWindow.hour(of: now))
        }
    }

    @Test func droppedPartitionDoesNotComeBackWhenTheClockIsSetBack() {
        var window = ClaimWindow(firstHour: 0)
        #expect(window.verdict(timestamp: noon, now: noon) == .claim(500_000))
        _ = window.maintain(now: noon + 4 * 3600)
        #expect(window.firstHour == 500_002)
        let (create, dropBefore) = window.maintain(now: noon)
        #expect(dropBefore == 500_002 && create == 500_002...500_002)
        #expect(window.verdict(timestamp: noon, now: noon) == .tooOld)
        #expect(window.gap(now: noon) == .seconds(7200) && window.gap(now: noon + 7200) == nil)
    }

    @Test func aDamagedFirstHourIsFarInTheFutureOrThePast() throws {
        #expect(ClaimWindow(firstHour: .min).gap(now: noon) == nil)
        for hour in [2_600_000_000_000_000, .max] as [ClaimWindow.Hour] {
            var window = ClaimWindow(firstHour: hour)
            #expect(try #require(window.gap(now: noon)) > .seconds(1 << 62))
            #expect(window.maintain(now: noon) == (hour...hour, hour))
            #expect(window.verdict(timestamp: noon, now: noon) == .tooOld)
        }
    }

    @Test func keysAreTheirHashes() {
        let bytes = (0..<32).map { UInt8($0 * 7) }
        #expect(MessageKey(bytes)?.bytes == bytes)
        #expect(MessageKey(bytes)?.prefix == 0x0007_0E15_1C23_2A31)
        #expect(MessageKey(Array(bytes.dropLast())) == nil && MessageKey([UInt8]()) == nil)
        #expect(NodeID(rawValue: 0xAB).description == "00000000000000ab")
    }

    // MARK: Servers

    @Test func replacedPrimaryIsRefusedByNodesThatKnowTheNewOne() {
        var check = PrimaryCheck()
        #expect(check.check(systemIdentifier: 5, timeline: 1) == nil)
        #expect(check.check(systemIdentifier: 5, timeline: 2) == nil)
        #expect(check.check(systemIdentifier: 5, timeline: 1) == .oldPrimary(timeline: 1, known: 2))
        #expect(check.check(systemIdentifier: 5, timeline: 2) == nil)
    }

    @Test func otherDatabaseIsRefusedAndNotRemembered() {
        var check = PrimaryCheck()
        #expect(check.check(systemIdentifier: 5, timeline: 1) == nil)
        #expect(check.check(systemIdentifier: 6, timeline: 9) == .otherDatabase)
        #expect(check.systemIdentifier == 5 && check.timeline == 1)
    }

    @Test func refusalsSayWhatToDo() {
        #expect("\(PrimaryCheck.Refusal.oldPrimary(timeline: 1, known: 2))".contains("stop it"))
    }
}
