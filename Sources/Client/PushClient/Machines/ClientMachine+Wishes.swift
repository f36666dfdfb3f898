import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What the application wants.
extension ClientMachine {
    /// Sets what is registered, and where. Nothing is sent when nothing changed.
    mutating func register(_ profile: DeviceProfile, with servers: [PushServer], at now: Timestamp) -> ClientOutput {
        let old = own.profile
        own.isReceiving = true
        own.profile = profile
        own.servers = servers.reduce(into: []) { list, server in
            if !list.contains(where: { $0.key == server.key }) { list.append(server) }
        }
        if let content = own.content, let old, profile.isRegisteredAs(old), !profile.revokesToken(of: old) {
            own.content = content
        } else {
            own.content = content(for: profile, after: old)
        }
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        actions.append(.watch([cryptography.publicKey]))
        return settle(at: now)
    }

    private func content(for profile: DeviceProfile, after old: DeviceProfile?) -> RegistrationContent {
        let keepsToken = old.map { !profile.revokesToken(of: $0) } ?? true
        let token = (keepsToken ? own.content?.accessToken : nil) ?? cryptography.makeAccessToken()
        let contacts = profile.contacts.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        return RegistrationContent(
            version: (own.content?.version ?? 0) + 1, accessToken: token,
            allowedKeyList: profile.contactsOnly ? contacts.map { StoredData(cryptography.seal(token, for: $0)) } : [])
    }

    /// Switches receiving on with what was registered last, or off, which ends all registrations.
    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isReceiving != isReceiving else { return ClientOutput() }
        guard isReceiving else { return unregister(at: now) }
        own.isReceiving = true
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Asks the servers about a registrant of whom no usable token is known.
    mutating func refresh(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        let isKnown = !directory.activeInstallations(of: registrant, limit: 1, at: now).isEmpty
        let isAskable = !own.servers.isEmpty || !directory.servers(of: registrant).isEmpty
        if !isKnown, isAskable { query(registrant, ownCheckAt: nil, at: now) }
        return settle(at: now)
    }

    /// Ends the registrations with all servers, and keeps trying until they answered.
    mutating func unregister(at now: Timestamp) -> ClientOutput {
        own.isReceiving = false
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Switched off, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isSending != isSending else { return ClientOutput() }
        own.isSending = isSending
        isOwnChanged = true
        if !isSending { notifications.cancelAll() }
        return settle(at: now)
    }

    /// What else goes into advertisements: an encoded ChatIdentity, empty for none.
    mutating func setChatIdentity(_ chatIdentity: [UInt8], at now: Timestamp) -> ClientOutput {
        guard own.chatIdentity != chatIdentity else { return ClientOutput() }
        own.chatIdentity = chatIdentity
        isOwnChanged = true
        if own.isReceiving { advertising.rowsChanged(at: now) }
        return settle(at: now)
    }

    /// Listens to a registrant's advertisements from now on.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        // Before the start, which looks all up at once.
        guard directory.watch(registrant), isStarted else { return }
        actions.append(.watch([registrant]))
        if directory.registrants[registrant]?.wasLookedUp != true { actions.append(.lookUp([registrant])) }
    }

    /// Forgets what is known of a registrant, and listens to its advertisements no more after the next start.
    mutating func forget(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        directory.forget(registrant)
        queries.forget(registrant)
        advertisementFlaws[registrant] = nil
        return settle(at: now)
    }

    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        directory.noteActivity(of: installationID, of: registrant, at: now)
        return settle(at: now)
    }

    mutating func setDeviceLimit(_ limit: Int) {
        notifications.deviceLimit = limit
    }

    /// Has devices notified. The client must be allowed to send.
    mutating func notify(_ message: OutgoingNotification, author: [UInt8], at now: Timestamp) -> ClientOutput {
        for recipient in message.recipients where recipient.registrant != cryptography.publicKey { watch(recipient.registrant) }
        notifications.notify(
            message, chat: StatusHashes.chat(message.chatID), author: author, own: (cryptography.publicKey, own.installationID), at: now)
        return settle(at: now)
    }

    mutating func cancel(_ messageID: [UInt8], at now: Timestamp) -> ClientOutput {
        notifications.cancel(messageID)
        return settle(at: now)
    }
}
