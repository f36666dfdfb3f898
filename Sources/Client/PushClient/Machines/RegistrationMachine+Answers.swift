import StatusProtocol
import Core
import WakuCrypto

/// Progress of registrations: deadlines, pauses and answers.
extension RegistrationMachine {
    // MARK: Time

    /// Whether the message still needs publishing: its answer may have arrived meanwhile.
    func isAwaitingPublication(_ requestID: [UInt8], to server: PublicKey) -> Bool {
        servers[server]?.attempt.map { $0.requestID == requestID && $0.state == .unsent } ?? false
    }

    mutating func published(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) {
            $0.attempt?.state = .sent(deadline: StoredTime(now + Self.answerDeadline))
            $0.attempt?.relayFailures = 0
        }
    }

    mutating func notPublished(_ requestID: [UInt8], to server: PublicKey, at now: Timestamp, jitter: Double) {
        guard isAwaitingPublication(requestID, to: server) else { return }
        update(server) { record in
            let failures = min((record.attempt?.relayFailures ?? 0) + 1, Self.relayFailureLimit)
            record.attempt?.relayFailures = failures
            let pause = RetryDelay.after(failures: failures, base: Self.pauseBase, jitter: jitter)
            record.attempt?.state = .paused(until: StoredTime(now + pause))
        }
    }

    mutating func wake(_ own: OwnRecord, at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            guard let record = servers[key], let due = record.nextWakeUp, due <= now else { continue }
            switch record.attempt?.state {
            case nil: if let content = own.content { register(key, content, own) }
            case .sent: pause(key, at: now, jitter: jitter.next())
            case .paused:
                update(key) { $0.attempt?.state = .unsent }
                send(key)
            case .checking: checked(key, row: nil, own, at: now, jitter: &jitter)
            case .unsent: break
            }
        }
        for key in order { reconcile(key, own) }
    }

    mutating func pause(_ key: PublicKey, at now: Timestamp, jitter: Double) {
        guard var attempt = servers[key]?.attempt else { return }
        attempt.tries += 1
        let tries = attempt.tries
        let pause: Duration
        if tries >= Self.tryLimit {
            attempt.tries = 0
            pause = Self.longPause
        } else {
            pause = RetryDelay.after(failures: tries, base: Self.pauseBase, jitter: jitter)
        }
        attempt.state = .paused(until: StoredTime(now + pause))
        update(key) { $0.attempt = attempt }
        actions.append(.report(.willRetry(key, tries: tries, after: pause)))
    }

    // MARK: Answers

    /// Handles an answer signed by the server. Late answers count: every repetition of a registration has the same id.
    mutating func answered(
        by server: PublicKey, requestID: [UInt8], error: PushNotificationRegistrationResponse.ErrorType?, _ own: OwnRecord,
        at now: Timestamp, jitter: inout Jitter
    ) {
        guard let attempt = servers[server]?.attempt, attempt.requestID == requestID else { return }
        switch error {
        case nil: succeeded(server, attempt, at: now, jitter: jitter.next())
        case .versionMismatch:
            if case .checking = attempt.state { return }
            update(server) { $0.attempt?.state = .checking(deadline: StoredTime(now + Self.ownQueryDeadline)) }
            actions.append(.checkOwn(server: server))
        case .malformedMessage: refuse(server, .malformedMessage, attempt.contentVersion)
        case .unsupportedTokenType: refuse(server, .unsupportedTokenType, attempt.contentVersion)
        case .internalError, .unknown:
            guard attempt.isInFlight else { return }
            pause(server, at: now, jitter: jitter.next())
        }
        // Other servers may have been waiting for an acceptance by this one, before they are left.
        for key in order { reconcile(key, own) }
    }

    private mutating func succeeded(_ server: PublicKey, _ attempt: ServerRegistration.Attempt, at now: Timestamp, jitter: Double) {
        update(server) { record in
            if let contentVersion = attempt.contentVersion {
                record.phase = .idle
                record.accepted = .init(
                    contentVersion: contentVersion, version: attempt.version, grant: attempt.grant,
                    renewal: RegistrationRenewal.time(afterAcceptanceAt: now, jitter: jitter))
            } else {
                record.phase = .left
                record.accepted = nil
                record.mayBeRegistered = false
            }
        }
        actions.append(
            .report(attempt.isUnregistration ? .unregistered(from: server) : .registered(with: server, version: attempt.version)))
        actions.append(.rowsChanged)
    }

    /// Handles the end of the query for this client's own registration.
    ///
    /// - Parameter row: The server's row for this installation; nil when there is none, or no answer.
    mutating func checked(
        _ server: PublicKey, row: (version: UInt64, grant: [UInt8])?, _ own: OwnRecord, at now: Timestamp, jitter: inout Jitter
    ) {
        guard let record = servers[server], var attempt = record.attempt, case .checking = attempt.state else { return }
        if let row, attempt.tries > 0, !attempt.isUnregistration, row.version == attempt.version, row.grant == attempt.grant {
            // The server had accepted an earlier try, and its answer was lost. On the first try it has another registration of this version, as of
            // a client that was restored from a backup: the grant does not depend on the settings.
            succeeded(server, attempt, at: now, jitter: jitter.next())
            for key in order { reconcile(key, own) }
            return
        }
        attempt.mismatches += 1
        let known = max(record.lastVersion, row?.version ?? 0)
        // Without an answer: +2, +4, … from the refused version.
        let step: UInt64 = row == nil ? (1 << UInt64(min(attempt.mismatches, 32))) - 1 : 0
        let (reached, isExhausted) = known.addingReportingOverflow(step)
        update(server) { $0.lastVersion = isExhausted ? .max - 1 : reached }
        let content = own.content
        let isStillWanted = record.isWanted && own.profile != nil && content != nil
        if attempt.isUnregistration != !isStillWanted {
            // The application's settings changed meanwhile.
            update(server) { $0.phase = attempt.isUnregistration ? .left : .idle }
            return reconcile(server, own)
        }
        if attempt.isUnregistration {
            unregister(server, after: attempt)
        } else if let content {
            register(server, content, own, after: attempt)
        }
        // The first higher version is sent at once. After a repeated refusal, the client pauses as if the server had not answered.
        guard attempt.mismatches > 1, servers[server]?.attempt != nil else { return }
        actions.removeAll { if case .send(server, _) = $0 { true } else { false } }
        pause(server, at: now, jitter: jitter.next())
    }
}
