import StatusProtocol
import Core
import WakuCrypto

/// Progress of Registers: publications and answers.
extension V01RegistrationMachine {
    mutating func publicationEnded(to server: PublicKey, isPublished: Bool) {
        // After a failure: the application may have changed its settings meanwhile; then this Register is never sent.
        guard isPublished, let attempt = servers[server]?.attempt else { return reconcile() }
        notePublication(of: attempt.content, to: server)
    }

    /// Once this content is published, any later content needs a higher version, at every server.
    private mutating func notePublication(of content: V01Content, to server: PublicKey) {
        update(server) { $0.lastVersion = max($0.lastVersion, content.version) }
        // The record changed before this was known, and got the same version: the server would refuse it.
        let isReplaced = servers[server]?.isWanted == true && own.content?.version == content.version && own.content != content
        if content.version > own.highestVersion {
            own.highestVersion = content.version
            isOwnChanged = true
        }
        if isReplaced { renewContent() }
    }

    // MARK: Answers

    mutating func answered(by server: PublicKey, _ response: V01.RegistrationResponse, at now: Timestamp, jitter: inout Jitter) {
        guard let attempt = servers[server]?.attempt, attempt.requestID == response.requestID else { return }
        // The answer may arrive before the relay confirms the publication, or after it reported a failure.
        notePublication(of: attempt.content, to: server)
        switch response.error {
        case nil: succeeded(server, attempt, at: now, jitter: jitter.next())
        case .versionMismatch: mismatched(server, attempt, response.preferences, at: now, jitter: jitter.next())
        case .malformedMessage: malformed(server, attempt)
        case .unsupportedTokenType: refuse(server, attempt, .unsupportedTokenType)
        case .internalError, .unknown: if attempt.isInFlight { pause(server, at: now, jitter: jitter.next()) }
        }
        reconcile()
    }

    private mutating func succeeded(_ server: PublicKey, _ attempt: V01ServerRecord.Attempt, at now: Timestamp, jitter: Double) {
        update(server) { record in
            record.phase = attempt.isFarewell ? .left : .idle
            record.accepted = attempt.content.version
            record.renewal = RegistrationRenewal.time(afterAcceptanceAt: now, jitter: jitter)
            record.mayBeRegistered = !attempt.isFarewell
            // `mismatches` is reset only by changes of the application: otherwise two servers could alternately force new versions of the record at
            // all servers, without a pause.
            (record.tries, record.relayFailures) = (0, 0)
        }
        // While any server still has the old token, a record of another device may restore it.
        if own.isTokenNew, attempt.content == own.content,
            own.servers.allSatisfy({ servers[$0]?.accepted == attempt.content.version })
        {
            own.isTokenNew = false
            isOwnChanged = true
        }
        let version = attempt.content.version
        actions.append(.report(attempt.isFarewell ? .unregistered(from: server) : .registered(with: server, version: version)))
        actions.append(.rowsChanged)
    }

    /// The server has a version at least as high: continues from it, with a new version for all servers. A tombstone comes without a record; then
    /// the version grows by steps of 1, 3, 7, ….
    private mutating func mismatched(
        _ server: PublicKey, _ attempt: V01ServerRecord.Attempt, _ returned: V01.Preferences?, at now: Timestamp, jitter: Double
    ) {
        if let returned, returned == attempt.content.preferences {
            // The server had accepted the record, and its answer was lost.
            return succeeded(server, attempt, at: now, jitter: jitter)
        }
        let mismatches = min((servers[server]?.mismatches ?? 0) + 1, 32)
        update(server) { $0.mismatches = mismatches }
        let known = max(own.highestVersion, returned?.version ?? 0)
        let (reached, isExhausted) = known.addingReportingOverflow(returned == nil ? (1 << UInt64(mismatches)) - 2 : 0)
        guard !isExhausted, reached - own.highestVersion < Self.versionStepLimit else { return refuse(server, attempt, .versionExhausted) }
        own.highestVersion = reached
        isOwnChanged = true
        if let returned { merge(returned) }
        guard renewContent() else { return refuse(server, attempt, .versionExhausted) }
        // The first higher version is sent at once. After a repeated refusal, the client pauses as if the server had not answered.
        guard mismatches > 1 else { return update(server) { $0.phase = .idle } }
        update(server) { $0.tries = max($0.tries, min(mismatches, RegistrationTiming.tryLimit) - 2) }
        pause(server, at: now, jitter: jitter)
    }

    /// A contact may have registered the access token as its own: retries once, with a new token.
    private mutating func malformed(_ server: PublicKey, _ attempt: V01ServerRecord.Attempt) {
        guard !attempt.isFarewell, servers[server]?.hasTriedNewToken == false else { return refuse(server, attempt, .malformedMessage) }
        if attempt.content.preferences?.accessToken == own.accessToken {
            replaceToken()
            guard renewContent() else { return refuse(server, attempt, .versionExhausted) }
        }
        update(server) {
            $0.hasTriedNewToken = true
            $0.phase = .idle
        }
    }

    private mutating func refuse(_ server: PublicKey, _ attempt: V01ServerRecord.Attempt, _ reason: RegistrationRefusal) {
        let generation = own.generation
        update(server) { record in
            if attempt.isFarewell {
                // The server rejected an unregistration: stop retrying.
                record.phase = .left
                record.mayBeRegistered = false
            } else {
                record.phase = .refused(reason, generation: generation)
            }
        }
        actions.append(.report(.refused(by: server, reason)))
    }
}
