import StatusProtocol
import Core
import WakuCrypto

/// Progress of Registers: publications, deadlines, pauses and answers.
extension V01RegistrationMachine {
    /// Whether the Register still needs publishing: its answer may have arrived meanwhile.
    func isAwaitingPublication(_ register: V01.Register, to server: PublicKey) -> Bool {
        servers[server]?.attempt.map { $0.register == register && $0.state == .unsent } ?? false
    }

    mutating func published(_ register: V01.Register, to server: PublicKey, at now: Timestamp) {
        guard isAwaitingPublication(register, to: server), let attempt = servers[server]?.attempt else { return }
        notePublication(of: attempt.content, to: server)
        update(server) {
            $0.attempt?.state = .sent(deadline: StoredTime(now + Self.answerDeadline))
            $0.relayFailures = 0
        }
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

    mutating func notPublished(_ register: V01.Register, to server: PublicKey, at now: Timestamp, jitter: Double) {
        guard isAwaitingPublication(register, to: server) else { return }
        update(server) { record in
            record.relayFailures = min(record.relayFailures + 1, Self.relayFailureLimit)
            let pause = RetryDelay.after(failures: record.relayFailures, base: Self.pauseBase, jitter: jitter)
            record.attempt?.state = .paused(until: StoredTime(now + pause))
        }
        // The application may have changed its settings meanwhile; then this Register is never sent.
        reconcile()
    }

    /// After no answer in time, or an unusable one: retries after a growing pause.
    mutating func pause(_ key: PublicKey, at now: Timestamp, jitter: Double) {
        guard let record = servers[key], record.attempt != nil else { return }
        let tries = record.tries + 1
        let isOver = tries >= Self.tryLimit
        let pause = isOver ? Self.longPause : RetryDelay.after(failures: tries, base: Self.pauseBase, jitter: jitter)
        update(key) {
            $0.tries = isOver ? 0 : tries
            $0.attempt?.state = .paused(until: StoredTime(now + pause))
        }
        actions.append(.report(.willRetry(key, tries: tries, after: pause)))
    }

    // MARK: Answers

    /// Handles an answer signed by the server. Late answers count: every repetition of a Register has the same id.
    mutating func answered(by server: PublicKey, _ response: V01.RegistrationResponse, at now: Timestamp, jitter: inout Jitter) {
        guard let attempt = servers[server]?.attempt, attempt.register.requestID == response.requestID else { return }
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
        update(server) { $0.tries = max($0.tries, min(mismatches, Self.tryLimit) - 2) }
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
