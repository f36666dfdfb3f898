import StatusProtocol
import Core
import WakuCrypto

/// Progress of registrations: deadlines, pauses and answers.
extension RegistrationMachine {
    mutating func wake(at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            guard let record = servers[key], let due = record.nextWakeUp, due <= now else { continue }
            switch record.attempt?.state {
            case nil: register(key)
            case .sent: pause(key, at: now, jitter: jitter.next())
            case .paused:
                update(key) { $0.attempt?.state = .unsent }
                send(key)
            case .checking: checked(key, row: nil, at: now, jitter: &jitter)
            case .unsent: break
            }
        }
        for key in order { reconcile(key) }
    }

    mutating func publicationEnded(to server: PublicKey, isPublished: Bool) {
        // After a failure: the application may have changed its settings meanwhile; then this registration is never sent.
        if !isPublished { for key in order { reconcile(key) } }
    }

    // MARK: Answers

    mutating func answered(
        by server: PublicKey, _ response: PushNotificationRegistrationResponse, at now: Timestamp, jitter: inout Jitter
    ) {
        guard let attempt = servers[server]?.attempt, attempt.requestID == response.requestID else { return }
        switch response.error {
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
        for key in order { reconcile(key) }
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

    mutating func checked(
        _ server: PublicKey, row: (version: UInt64, grant: [UInt8])?, at now: Timestamp, jitter: inout Jitter
    ) {
        guard let record = servers[server], var attempt = record.attempt, case .checking = attempt.state else { return }
        if let row, attempt.tries > 0, !attempt.isUnregistration, row.version == attempt.version, row.grant == attempt.grant {
            // The server had accepted an earlier try, and its answer was lost. On the first try it has another registration of this version, as of
            // a client that was restored from a backup: the grant does not depend on the settings. If an earlier try was lost, this may be such a
            // registration, too: the settings are sent again soon, with a new version.
            succeeded(server, attempt, at: now, jitter: jitter.next())
            update(server) { $0.accepted?.renewal = StoredTime(now + RegistrationTiming.confirmation) }
            for key in order { reconcile(key) }
            return
        }
        attempt.mismatches += 1
        let known = max(record.lastVersion, row?.version ?? 0)
        // Without an answer: +2, +4, … from the refused version.
        let step: UInt64 = row == nil ? (1 << UInt64(min(attempt.mismatches, 32))) - 1 : 0
        let (reached, isExhausted) = known.addingReportingOverflow(step)
        update(server) { $0.lastVersion = isExhausted ? .max - 1 : reached }
        let isStillWanted = record.isWanted && own.profile != nil && own.content != nil
        if attempt.isUnregistration != !isStillWanted {
            // The application's settings changed meanwhile.
            update(server) { $0.phase = attempt.isUnregistration ? .left : .idle }
            return reconcile(server)
        }
        if attempt.isUnregistration {
            unregister(server, after: attempt)
        } else {
            register(server, after: attempt)
        }
        // The first higher version is sent at once. After a repeated refusal, the client pauses as if the server had not answered.
        guard attempt.mismatches > 1, servers[server]?.attempt != nil else { return }
        actions.removeAll { if case .send(server, _) = $0 { true } else { false } }
        pause(server, at: now, jitter: jitter.next())
    }
}
