import Delivery
import Foundation
import Logging
import NodeMetrics
import Storage
import Synchronization
import Waku
import WakuCrypto

/// The way of a protocol's messages: decode on all cores, decide and commit, reply. Each stage works while the others do.
///
/// What was taken holds room until it is committed. When room is short, queries are shed first, since their askers won't wait; then requests;
/// registrations never are: whoever brings messages waits, which is how the relay learns to slow down.
///
/// Messages are committed in the order in which they came.
package final class WakuIntake<Handler: WakuHandler>: WakuReceiver {
    private typealias Message = Decoded<Handler.Command>

    /// A message on its way to be decoded.
    private struct Opening: Sendable {
        let incoming: Incoming
        var keys: [SymmetricKey] = []
        /// To be tried again with keys that are not at hand, if it does not open.
        var mayNeedKeys = false
    }

    private let handler: Handler
    private let node: NodeServices
    private let room: AsyncSlots
    /// What others must leave free for registrations, and for these and requests.
    private let kept: (fromRequests: Int, fromQueries: Int)
    private let waiting = Mutex((total: 0, byTopic: [TopicTag: Int]()))

    package init(_ handler: Handler, _ node: NodeServices) {
        self.handler = handler
        self.node = node
        room = AsyncSlots(node.workLimit)
        kept = (node.workLimit / 4, node.workLimit / 2)
    }

    package func take(_ incoming: [Incoming]) async {
        var ready: [Opening] = []
        for incoming in incoming {
            switch handler.keys(of: incoming.tag) {
            case .known(let keys): ready.append(Opening(incoming: incoming, keys: keys))
            case .missingUnlessOwn: ready.append(Opening(incoming: incoming, mayNeedKeys: true))
            case .missing: decodeLater(incoming)
            }
        }
        await decode(ready)
    }

    // MARK: Keys

    /// Derives the topic's key beside the pipeline, and goes on from there.
    private func decodeLater(_ incoming: Incoming) {
        let tag = incoming.tag
        let hasRoom = waiting.withLock { waiting in
            guard waiting.total < IntakeLimits.waiting, waiting.byTopic[tag, default: 0] < IntakeLimits.waitingOnTopic else { return false }
            waiting.total += incoming.cost
            waiting.byTopic[tag, default: 0] += incoming.cost
            return true
        }
        guard hasRoom else { return drop(incoming.hash, .shedWaitingQuery) }
        Task {
            if let keys = try? await handler.deriveKeys(of: tag) {
                await submit(decode([Opening(incoming: incoming, keys: keys)]))
            } else {
                drop(incoming.hash, .failedTopicKey)
            }
            waiting.withLock { waiting in
                waiting.total -= incoming.cost
                let others = waiting.byTopic[tag, default: 0] - incoming.cost
                waiting.byTopic[tag] = others > 0 ? others : nil
            }
        }
    }

    // MARK: Decoding

    /// On all cores; goes on in the order of `openings`.
    private func decode(_ openings: [Opening]) async {
        let cores = IntakeLimits.cores
        let size = min(IntakeLimits.decodingChunk, (openings.count + cores - 1) / cores)
        guard size < openings.count else { return await submit(decode(openings[...])) }
        var starts = stride(from: 0, to: openings.count, by: size).makeIterator()
        await withTaskGroup(of: (Int, [Message]).self) { group in
            func addNext() {
                guard let start = starts.next() else { return }
                let chunk = openings[start..<min(start + size, openings.count)]
                group.addTask { (start, self.decode(chunk)) }
            }
            // One more than cores, so that none waits while messages are handed on.
            for _ in 0...cores { addNext() }
            var decoded: [Int: [Message]] = [:]
            var next = 0
            for await (start, messages) in group {
                decoded[start] = messages
                while let messages = decoded.removeValue(forKey: next) {
                    await submit(messages)
                    next += size
                }
                addNext()
            }
        }
    }

    /// What can't be decoded is counted and left out.
    private func decode(_ chunk: ArraySlice<Opening>) -> [Message] {
        let time = node.now()
        var othersOpened = 0
        let messages: [Message] = chunk.compactMap { opening in
            let incoming = opening.incoming
            do throws(Drop) {
                return try handler.decode(incoming, keys: opening.keys, at: time)
            } catch {
                if opening.mayNeedKeys, error.counter == .droppedUndecryptable {
                    decodeLater(incoming)
                } else {
                    drop(incoming.hash, error.counter)
                    if error.counter.isAfterOpening { othersOpened += 1 }
                }
                return nil
            }
        }
        node.counters.opened(messages.lazy.map { (kind: $0.kind, times: $0.times) }, others: othersOpened)
        return messages
    }

    private func drop(_ hash: MessageHash, _ counter: Counter) {
        // Whoever sees the count may stop the node.
        if !counter.mayBeHandledLater { node.handled.note(hash) }
        node.counters.add(counter)
        node.logger.debug("message dropped", metadata: ["message": "\(hash)", "reason": "\(counter.name)"])
    }

    // MARK: Rules and commit

    /// Gives messages their place in the order of commits, and has them answered after it.
    private func submit(_ messages: [Message]) async {
        var changes: [Message] = []
        var queries: [Message] = []
        for message in messages {
            switch message.kind {
            case .query:
                guard room.takeNow(message.cost, leaving: kept.fromQueries) else { drop(message.hash, .shedQuery); continue }
                queries.append(message)
            case .request:
                guard room.takeNow(message.cost, leaving: kept.fromRequests) else { drop(message.hash, .shedRequest); continue }
                changes.append(message)
            case .registration:
                await room.take(message.cost)
                changes.append(message)
            }
        }
        if !changes.isEmpty { commit(changes) }
        // They see what was committed before they came, and what they ask for is not older than what others were told.
        if !queries.isEmpty {
            node.store.afterCommits { [queries] in
                self.node.store.onReader { self.answer(queries) }
            }
        }
    }

    private func commit(_ messages: [Message]) {
        let time = node.now()
        node.store.submit(messages.map { handler.change($0, at: time) }) { [self] results in
            // In the order of commits: a device's notifications go out in it.
            let queued = results.flatMap { result in (try? result.get()).map(handler.queued) ?? [] }
            node.counters.add(.notificationQueued, queued.count)
            node.delivery.enqueue(queued)
            Task {
                for (message, result) in zip(messages, results) {
                    finish(message, result)
                    room.give(message.cost)
                }
            }
        }
    }

    private func finish(_ message: Message, _ result: Result<Handler.Outcome, StoreError>) {
        switch result {
        case .success: node.counters.reached(.durable, message.kind, message.times)
        case .failure(let error):
            node.counters.add(.failedStore)
            node.logger.error("not stored", metadata: ["reason": "\(error.message)"])
        }
        handler.finish(message, result)
    }

    // MARK: Queries

    private func answer(_ messages: [Message]) {
        let time = node.now()
        do throws(StoreError) {
            for (message, result) in zip(messages, try node.store.readEach(messages.map { handler.answer($0, at: time) })) {
                // One that can't be answered takes no other with it.
                do throws(StoreError) {
                    let reply = try result.get()
                    handler.answered(message, reply)
                    if let reply { node.replies.publish(reply) } else { node.handled.note(message.hash) }
                } catch {
                    fail(1, error)
                }
            }
        } catch {
            fail(messages.count, error)
        }
        for message in messages { room.give(message.cost) }
    }

    private func fail(_ count: Int, _ error: StoreError) {
        node.counters.add(.failedStore, count)
        node.logger.error("query not answered", metadata: ["reason": "\(error)"])
    }

    // MARK: Figures

    package var load: (depth: Int, limit: Int) { (room.takenCount, room.capacity) }
    package var waitingForKeys: Int { waiting.withLock { $0.total } }
    package var isIdle: Bool { room.areAllFree && waiting.withLock { $0.total == 0 } }
}

package enum IntakeLimits {
    /// For messages that wait for the key of their topic: more are shed. In units of 4 KiB, one for each at least.
    package static let waiting = 16_384
    /// Of these on one topic. A flood of junk that is larger, before the key is there, takes good queries with it.
    static let waitingOnTopic = 8_192
    /// Messages that are decoded in one go: in between, others have their turn.
    static let decodingChunk = 16
    /// Asked for once: on Linux that reads files.
    static let cores = ProcessInfo.processInfo.activeProcessorCount
}

extension Counter {
    /// A message that ends with this may come to something when it comes again after a restart.
    fileprivate var mayBeHandledLater: Bool { Self.laterCounters.contains(self) }

    private static let laterCounters: Set<Counter> = [
        .segment, .shedWaitingQuery, .shedQuery, .shedRequest, .failedTopicKey, .failedStore,
    ]
}
