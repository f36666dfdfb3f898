import Delivery
import Logging
import NodeMetrics
import Storage
import Waku

/// Looks after a node while it runs: every few seconds notes how far the relay has been seen, which shows at the same time whether the store
/// can be written; once a minute writes a line to the log and prunes; once an hour ends what was not renewed.
struct Maintenance: Sendable {
    /// A line in the log, and pruning, come with every so many rounds: once a minute.
    private static let roundsPerMinute = 12
    /// All rows are looked at for it.
    private static let expiryInterval = Duration.seconds(3600)
    private static let aliveProperty = "alive at"
    private static let memoryRowLimit = 2_000_000
    /// Longer than what is looked at again before a cursor, with what senders' clocks may be off.
    private static let handledMargin = Duration.seconds(180)

    let interval: Duration
    /// See ``NodeConfiguration/handledInterval``.
    let handledInterval: Duration
    /// For how long it is known what was delivered and answered.
    let memory: Duration
    let relay: any Relay
    let store: any Store
    let delivery: DeliveryService
    let handled: HandledMessages
    let protocols: [any ProtocolService]
    let counters: Counters
    /// Topics that are listened on beside the node's own.
    let topicCount: @Sendable () -> Int
    let logger: Logger
    let now: @Sendable () -> Timestamp

    /// Runs until cancelled.
    func run() async {
        var rounds = 0
        var lastExpiry = ContinuousClock.now - Self.expiryInterval
        var last: [Counter: Int] = [:]
        var forgetting = ForgettingClock(memory: memory)
        let started = ContinuousClock.now
        // What the clock shows now is what later steps of it are measured by: the first round may take its time.
        _ = forgetting.cutoff(clock: now(), uptime: .zero)
        // From its very start a life is to be gone on from.
        await saveCursors()
        while (try? await Task.sleep(for: interval)) != nil {
            await saveCursors()
            await store.maintain()
            let cutoff = forgetting.cutoff(clock: now(), uptime: .now - started)
            rounds += 1
            guard rounds >= Self.roundsPerMinute else { continue }
            rounds = 0
            let counts = counters.snapshot
            summarize(counts, since: last)
            last = counts
            await prune(Forgetting(cutoff: cutoff, rowLimit: Self.memoryRowLimit, now: cutoff + memory))
            if ContinuousClock.now - lastExpiry > Self.expiryInterval {
                lastExpiry = .now
                for service in protocols { await service.expire(at: now()) }
            }
        }
    }

    /// Writes handled messages down as they come. Runs until cancelled.
    func saveHandledMessages() async {
        for await _ in handled.arrivals {
            guard (try? await Task.sleep(for: handledInterval)) != nil else { return }
            let hashes = handled.take()
            guard !hashes.isEmpty else { continue }
            do throws(StoreError) {
                try await store.commit(StoreCommand.change(NodeStorage.remember(hashes, at: now())))
            } catch {
                // The next cursors take them along, and say what is wrong.
                handled.putBack(hashes)
            }
        }
    }

    /// Writes down up to when nothing was missed, and which messages need no second look.
    func saveCursors() async {
        let (seenUntil, now, handled) = (relay.seenUntil, now(), handled.take())
        // What a relay looks at again begins earlier than its cursor.
        let forgettable = min(seenUntil.values.min() ?? now, now) - Self.handledMargin
        // Written each time, so that a store that can't be written to, or can again, shows.
        let changes =
            [Properties.set(Self.aliveProperty, to: now.bytes)] + RelayCursors.write(seenUntil) + NodeStorage.remember(handled, at: now)
        do throws(StoreError) {
            try await store.commit(StoreCommand.change(changes).then { NodeStorage.forgetHandled(before: forgettable) })
        } catch {
            self.handled.putBack(handled)
            logger.error("store not writable", metadata: ["reason": "\(error.message)"])
        }
    }

    private func prune(_ forgetting: Forgetting) async {
        do throws(StoreError) {
            try await store.commit(DeliveryStorage.prune(before: forgetting.cutoff, keeping: forgetting.rowLimit))
        } catch {
            logger.error("old deliveries not pruned", metadata: ["reason": "\(error.message)"])
        }
        for service in protocols { await service.prune(forgetting) }
    }

    private func summarize(_ counts: [Counter: Int], since last: [Counter: Int]) {
        var metadata: Logger.Metadata = ["topics": "\(topicCount())", "waiting": "\(delivery.waitingCount)"]
        for (counter, count) in counts {
            let difference = count - (last[counter] ?? 0)
            if difference > 0 { metadata[counter.name] = "\(difference)" }
        }
        logger.info("last minute", metadata: metadata)
    }
}
