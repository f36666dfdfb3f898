import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

@Suite struct SteadyClockTests {
    private let start = MachineBench.start

    @Test func followsTheUptimeRegardlessOfTheClock() {
        let clock = SteadyClock(kept: nil, lead: .zero, clock: start, uptime: .seconds(5))
        #expect(clock.time(at: .seconds(5)) == start && clock.time(at: .seconds(65)) == start + .seconds(60))
    }

    @Test func neverGoesBackOverARestart() {
        let clock = SteadyClock(kept: start, lead: .zero, clock: start - .seconds(3600), uptime: .zero)
        #expect(clock.time(at: .zero) == start)
    }

    @Test func noticesThatTimePassedBetweenTwoLives() {
        let clock = SteadyClock(kept: start, lead: .zero, clock: start + .seconds(3600), uptime: .zero)
        #expect(clock.time(at: .zero) == start + .seconds(3600))
    }

    /// As on a machine without a battery, whose clock is set by the network some time after each boot.
    @Test(arguments: [0, 365]) func aClockThatIsBehindForAWhileHasNoEffectAfterwards(aheadDays: Int) {
        let ahead = Duration.seconds(aheadDays * 86_400)
        var (kept, lead) = (start + ahead, Duration.zero)
        for hours in 1...5 {
            let right = start + .seconds(hours * 3600)
            for clock in [right, Timestamp(rawValue: 1), right + .seconds(1)] {
                let clock = SteadyClock(kept: kept, lead: lead, clock: clock, uptime: .zero)
                (kept, lead) = (clock.time(at: .zero), clock.lead)
            }
            // The first start with the right clock found the lead.
            let passed = Duration.seconds((hours - 1) * 3600 + 1)
            #expect(kept == start + (aheadDays == 0 ? .seconds(hours * 3600 + 1) : ahead + passed), "\(hours)")
        }
        #expect(lead == (aheadDays == 0 ? .zero : ahead - .seconds(3600)))
    }

    /// The own record has the lists of contacts. Releases that don't know of the time in other records read them all the same.
    @Test func timeIsStoredWithEachChangeAndTheOwnRecordOnlyWhenItChanged() throws {
        var bench = MachineBench()
        let friend = newKey()
        let changes: [(Set<RecordKey>, (inout ClientMachine) -> Void)] = [
            ([.registrant(friend)], { $0.watch(friend) }),
            ([.own], { $0.setSending(true) }),
            // Nothing is left of the record.
            ([.registrant(friend), .own], { $0.forget(friend) }),
        ]
        for (keys, change) in changes {
            bench.now = bench.now + .seconds(100)
            change(&bench.machine)
            let output = bench.machine.settle(at: bench.now)
            #expect(Set(output.changes.keys) == keys)
            bench.take(output)
            let records = try bench.stored.map { key, record in try ClientRecord(ClientRecord.name(of: key), record.encoded()) }
            #expect(RecordsByKind(records).time == bench.now)
            #expect(try bench.stored.values.allSatisfy { try $0.encoded().first == 1 })
        }
    }

    /// A client with short processes would stand still until the system clock has caught up.
    @Test func timePassesBetweenProcessesAfterTheClockWasSetBack() throws {
        let ahead = start + .seconds(365 * 86_400)
        let own = OwnRecord(installationID: InstallationID("own-device"), time: ahead)
        let cryptography = ValueCryptography(publicKey: PrivateKey.generate().publicKey, sealed: SealedRegistrations())
        var records = [ClientRecord.own(own)]
        for days in [0, 10, 20] {
            var kept: OwnRecord?
            for case .own(let record) in records { kept = record }
            let clock = SteadyClock(
                kept: kept?.time, lead: try #require(kept).steadyLead, clock: start + .seconds(days * 86_400), uptime: .zero)
            #expect(clock.time(at: .zero) == ahead + .seconds(days * 86_400))
            var machine = ClientMachine(
                records: records, installationID: own.installationID, cryptography: cryptography, at: clock.time(at: .zero))
            machine.follow(clock)
            // Nothing is due, so that only the lead is stored.
            machine.start(at: clock.time(at: .zero))
            if let stored = machine.settle(at: clock.time(at: .zero)).changes[.own], let record = stored { records = [record] }
        }
    }
}
