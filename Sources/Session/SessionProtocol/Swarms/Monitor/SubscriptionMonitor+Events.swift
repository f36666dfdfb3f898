import Foundation
import Logging
import Core
import Synchronization

/// Handles messages of storage servers, on the ZeroMQ client's thread.
extension SubscriptionMonitor {
    func handle(_ number: ConnectionNumber, _ event: OxenMQClient.Event) -> OxenMQClient.Flow {
        switch event {
        case .hello:
            count(.connected)
            change { state, now in
                state.monitor.connected(number, at: now)
                noteConnections(&state)
            }
        case .closed(let reason): closed(number, reason)
        case .reply(let tag, let parts): return replied(number, tag: tag, parts: parts)
        case .refused(_, let tag, let byteCount): return refused(number, tag, byteCount)
        case .command("notify.message", let parts): return reported(number, parts)
        case .command(MonitorEnded.command, let parts): return ended(number, parts)
        case .command(_, let parts): return drop(.unknownCommand, size(of: parts), from: number)
        case .ignored(let byteCount): return drop(.notOxenMQ, byteCount, from: number)
        }
        return .proceed
    }

    private func closed(_ number: ConnectionNumber, _ reason: OxenMQClient.Reason) {
        count(.disconnected)
        change { state, now in
            if let server = state.monitor.server(of: number) {
                logger.debug("storage server disconnected", metadata: ["address": "\(server.endpoint)", "reason": "\(reason)"])
            }
            state.forget(number)
            state.monitor.failed(number, at: now)
            noteConnections(&state)
        }
        forget(number)
    }

    // MARK: Replies

    private func replied(_ number: ConnectionNumber, tag: [UInt8], parts: [[UInt8]]) -> OxenMQClient.Flow {
        // Ignores a reply to a request of another connection.
        guard let tag = RequestTag(tag), let entryCount = entryCount(of: tag, on: number) else {
            return drop(.unknownReply, size(of: parts), from: number)
        }
        let outcomes = parts.count == 1 ? MonitorOutcome.outcomes(parsing: parts[0], count: entryCount) : nil
        for case .refused(let refusal, _) in outcomes ?? [] { count(.refused(refusal)) }
        change { state, now in
            if outcomes == nil, let server = state.monitor.server(of: number) {
                logger.warning("invalid reply from storage server", metadata: ["address": "\(server.endpoint)"])
            }
            state.monitor.replied(tag, outcomes, at: now)
        }
        return .proceed
    }

    private func refused(_ number: ConnectionNumber, _ tag: [UInt8]?, _ byteCount: Int) -> OxenMQClient.Flow {
        guard let tag = tag.flatMap({ RequestTag($0) }), let entryCount = entryCount(of: tag, on: number) else {
            return drop(.unknownReply, byteCount, from: number)
        }
        for _ in 0..<entryCount { count(.refused(.other)) }
        change { state, now in state.monitor.refused(tag, at: now) }
        return .proceed
    }

    private func entryCount(of tag: RequestTag, on number: ConnectionNumber) -> Int? {
        state.withLock { $0.monitor.entryCount(of: tag, on: number) }
    }

    // MARK: Reports

    private func reported(_ number: ConnectionNumber, _ parts: [[UInt8]]) -> OxenMQClient.Flow {
        do throws(SessionDropReason) {
            guard parts.count == 1 else { throw .malformed }
            let message = try NotifyMessage(parsing: parts[0])
            let now = Self.unixMilliseconds
            let (isMonitored, deviceCount, server) = state.withLock {
                (
                    $0.monitor.accepts(message.account, from: number), $0.monitor.deviceCount(of: message.account),
                    $0.monitor.serverKey(of: number)
                )
            }
            try MessageRules.admit(message, isMonitored: isMonitored, at: now)
            count(.received)
            let (isFirst, isFull) = messages.withLock {
                ($0.isEmpty, $0.append((message, now, server), from: number, deviceCount: deviceCount))
            }
            // One signal suffices: the reader empties the queue before it waits again.
            if isFirst { messageAdded.signal() }
            return isFull ? .pause : .proceed
        } catch {
            return drop(error, size(of: parts), from: number)
        }
    }

    /// Handles `notify.monitor_ended`: an account has left the server's swarm.
    private func ended(_ number: ConnectionNumber, _ parts: [[UInt8]]) -> OxenMQClient.Flow {
        var reason: SessionDropReason?
        change { state, now in
            do throws(MonitorEnded.Malformed) {
                guard parts.count == 1 else { throw MonitorEnded.Malformed() }
                let notice = try MonitorEnded(parsing: parts[0], &state.hints)
                if !state.monitor.ended(notice.account, hint: notice.hint, by: number, at: now) { reason = .unsolicited }
            } catch {
                reason = .malformed
            }
        }
        if let reason { return drop(reason, size(of: parts), from: number) }
        count(.ended)
        return .proceed
    }

    private static var unixMilliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    /// Counts a dropped message. A server that sends too many is read slowly, but keeps its connection.
    private func drop(_ reason: SessionDropReason, _ byteCount: Int, from number: ConnectionNumber) -> OxenMQClient.Flow {
        count(.dropped(reason))
        let until = state.withLock { state -> Instant? in
            // Messages read after the end of the connection are not counted.
            guard let server = state.monitor.server(of: number) else { return nil }
            let now = Instant.now
            var allowance = state.allowances[number] ?? DropAllowance(limits: configuration.drops, at: now)
            let pause = allowance.spend(byteCount: byteCount, at: now)
            state.allowances[number] = allowance
            guard let pause else { return nil }
            if state.slow.insert(number).inserted {
                logger.warning(
                    "reading slowly from storage server: too many invalid messages",
                    metadata: ["address": "\(server.endpoint)", "last": "\(reason.rawValue)"])
            }
            state.throttled[number] = now + pause
            // Its answers may be queued behind these messages.
            state.monitor.postpone(number, by: pause)
            return now + pause
        }
        guard let until else { return .proceed }
        let pause = max(until - .now, .zero)
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(pause / .milliseconds(1)) + 1)) { [weak self] in
            self?.unthrottle(number, until)
        }
        return .pause
    }

    private func size(of parts: [[UInt8]]) -> Int { parts.reduce(0) { $0 + $1.count } }

    private func unthrottle(_ number: ConnectionNumber, _ until: Instant) {
        let isDue = state.withLock { state in
            guard state.throttled[number] == until else { return false }
            state.throttled[number] = nil
            return true
        }
        if isDue, !messages.withLock({ $0.isPaused(number) }) { resume([number]) }
    }

    /// Reads connections again, except throttled ones.
    func resume(_ numbers: [ConnectionNumber]) {
        guard !numbers.isEmpty, let client = client.withLock({ $0 }) else { return }
        let waiting = state.withLock(\.throttled)
        for number in numbers where waiting[number] == nil { client.resume(number) }
    }

    /// Logs when the first server is connected, and when no server is connected any more.
    private func noteConnections(_ state: inout State) {
        let isConnected = state.monitor.isConnected
        guard isConnected != state.isConnectedLogged else { return }
        state.isConnectedLogged = isConnected
        if isConnected {
            logger.info("storage servers connected")
        } else {
            logger.warning("no storage server connected")
        }
    }
}
