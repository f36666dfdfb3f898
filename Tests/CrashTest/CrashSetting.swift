import Core
import ArgumentParser
import Foundation

/// The environment of a run: the ledger, and a gorush stand-in that records into it.
struct CrashSetting: Sendable {
    let ledger = LedgerBox()
    /// Signalled for each reply of gorush.
    let replies = Bell()
    let gorush: GorushStandIn

    init(seed: UInt64) {
        gorush = GorushStandIn(
            seed: seed,
            events: GorushStandIn.Events(
                posted: { [ledger] taken, daemon in
                    ledger.withLock { ledger in
                        let now = ContinuousClock.now
                        for one in taken { ledger.posted(one.delivery, token: one.token, showsOnce: one.showsOnce, by: daemon, at: now) }
                    }
                },
                replied: { [ledger, replies] taken, daemon in
                    ledger.withLock { ledger in
                        let now = ContinuousClock.now
                        for one in taken { ledger.replied(to: one.delivery, by: daemon, at: now) }
                    }
                    replies.ring()
                },
                unreadable: { [ledger] body in ledger.withLock { $0.breaks("gorush can't read \(body)") } }))
    }

    /// Prints the figures and the verdict.
    ///
    /// - Throws: `ExitCode` when data was lost.
    func report(_ failure: Failed?, began: ContinuousClock.Instant, seed: UInt64) throws {
        for line in ledger.withLock({ $0.figures.lines }) { print(line) }
        print("time: \(((ContinuousClock.now - began) / .seconds(1)).formatted(.number.precision(.fractionLength(1)))) s")
        if let failure {
            print("FAILED, seed \(seed), \(failure)")
            throw ExitCode.failure
        }
        print("Nothing was lost.")
    }
}
