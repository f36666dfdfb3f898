import Testing

/// The simulation detects drivers and databases with a defect: each violates an invariant within a few hundred seeds. The cases of `Mutation`
/// describe the defects.
@Suite struct ClusterMutantTests {
    @Test(
        arguments: [
            (.ignoresLease, [.doubled]),
            (.clockWithoutSuspension, [.doubled]),
            (.wallClock, [.doubled]),
            (.leasesByDatabaseClock, [.doubled]),
            (.marksWithoutEpoch, [.doubled]),
            (.postsWithoutMark, [.doubled]),
            (.repeatsMarkedRowsAtOnce, [.doubled]),
            (.holdsFromTakeOver, [.heldTooLong]),
            (.releasesUnsettled, [.doubled]),
            (.ignoresEarlierRows, [.order]),
            (.readsBeyondLastID, [.notificationIsLost]),
            (.claimsByReading, [.effectTwice]),
            (.forgetsFirstHour, [.effectTwice]),
            (.trustsLostCommits, [.acknowledgedIsLost]),
            (.trustsOldPrimary, [.acknowledgedIsLost]),
            (.answersFromReads, [.acknowledgedIsLost]),
            (.ignoresFinishedRows, [.junkHandledTwice]),
            (.leavesClaimedMessages, [.unanswered]),
            (.queriesByRankZeroOnly, [.unanswered]),
            (.ignoresOlderRules, [.junkHandledTwice]),
        ] as [(Mutation, Set<Violation.Kind>)])
    func simulationFinds(_ mutation: Mutation, breaking kinds: Set<Violation.Kind>) async {
        let first = Self.firstSeeds[mutation] ?? 1
        let result = await SimulationRuns.run(first...(first + 400), until: kinds) { seed in
            var plan = SimulationPlan(seed: seed)
            plan.mutation = mutation
            plan.emphasize(mutation)
            return plan
        }
        #expect(!result.kinds.isDisjoint(with: kinds), "not found in \(result.count) seeds: \(result.failures)")
        print("\(mutation): \(result.count) seeds")
    }

    /// First seeds for mutants that need many, to save time. When the models change, other seeds detect them.
    private static let firstSeeds: [Mutation: UInt64] = [
        .ignoresLease: 68, .wallClock: 56, .marksWithoutEpoch: 610, .leasesByDatabaseClock: 1234, .forgetsFirstHour: 87,
        .repeatsMarkedRowsAtOnce: 75,
    ]

    /// The same plans without the defects, one of each branch of ``SimulationPlan/emphasize(_:)``: shows that the plans alone violate nothing.
    @Test(
        arguments: [
            .ignoresLease, .wallClock, .leasesByDatabaseClock, .marksWithoutEpoch, .postsWithoutMark, .ignoresEarlierRows,
            .forgetsFirstHour, .trustsOldPrimary, .claimsByReading, .ignoresFinishedRows, .leavesClaimedMessages,
        ] as [Mutation])
    func emphasizedFaultsBreakNothing(_ mutation: Mutation) async {
        let result = await SimulationRuns.run(1...SimulationRuns.plainSeeds) { seed in
            var plan = SimulationPlan(seed: seed)
            plan.emphasize(mutation)
            return plan
        }
        #expect(result.failures == [])
    }
}

extension SimulationPlan {
    /// Increases the faults that reveal the defect, so that fewer seeds are needed.
    mutating func emphasize(_ mutation: Mutation) {
        switch mutation {
        case .ignoresLease, .clockWithoutSuspension:
            (faults, faultInterval) = ([.pause], 3000)
            busy()
        case .wallClock:
            (faults, faultInterval) = ([.stepNodeClock, .cutFromDatabase, .gorushTrouble], 2000)
            busy()
        case .leasesByDatabaseClock:
            (faults, faultInterval, isGorushTroubled) = ([.stepDatabaseClock], 2000, true)
            busy()
        case .marksWithoutEpoch:
            (faults, faultInterval, lineLoss) = ([.pause, .drain, .stepDatabaseClock], 2000, 40)
            busy()
        case .postsWithoutMark, .repeatsMarkedRowsAtOnce, .holdsFromTakeOver, .releasesUnsettled:
            (faults, faultInterval) = ([.pause, .kill, .cutFromDatabase, .drain, .gorushTrouble], 2000)
            busy()
        case .ignoresEarlierRows, .readsBeyondLastID: busy()
        case .forgetsFirstHour: (faults, faultInterval, repetitions) = ([.stepDatabaseClock, .kill], 4000, 60)
        case .trustsOldPrimary, .answersFromReads, .trustsLostCommits:
            (faults, faultInterval) = ([.failover, .databaseOutage, .kill], 3000)
        case .claimsByReading: lineLoss = 20
        case .ignoresFinishedRows, .ignoresOlderRules: faultInterval = 0
        case .leavesClaimedMessages, .queriesByRankZeroOnly:
            (faults, faultInterval, hearingLoss) = ([.kill, .deafen], 1500, 20)
        }
    }

    private mutating func busy() {
        (messageCount, deviceCount) = (120, 3)
    }
}
