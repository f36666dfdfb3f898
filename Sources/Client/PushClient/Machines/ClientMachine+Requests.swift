import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Requests of the application.
extension ClientMachine {
    /// Sets the profile and the servers to register with. Sends nothing when nothing changed.
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

    /// Enables receiving with the last registered profile, or disables it, which ends all registrations.
    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isReceiving != isReceiving else { return ClientOutput() }
        guard isReceiving else { return unregister(at: now) }
        own.isReceiving = true
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Queries the servers about a registrant without a known usable token.
    mutating func refresh(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        let isKnown = !directory.activeInstallations(of: registrant, limit: 1, at: now).isEmpty
        if !isKnown, isAskable(registrant) { query(registrant, ownCheckAt: nil, at: now) }
        return settle(at: now)
    }

    /// Whether any server can be queried about the registrant.
    private func isAskable(_ registrant: PublicKey) -> Bool {
        !queryServers.isEmpty || !directory.servers(of: registrant).isEmpty
    }

    /// Whether no advertisement of the registrant is known or can be looked up, and no server can be queried.
    func isServerless(_ registrant: PublicKey) -> Bool {
        directory.lookUpsEnded.contains(registrant) && !isAskable(registrant)
    }

    /// Whether a look-up or a query for the registrant is under way.
    func isDiscovering(_ registrant: PublicKey) -> Bool {
        !directory.lookUpsEnded.contains(registrant) || queries.isUnderWay(about: registrant)
    }

    /// Ends the registrations with all servers, retrying until they answer.
    mutating func unregister(at now: Timestamp) -> ClientOutput {
        own.isReceiving = false
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Enables or disables sending. When disabled, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isSending != isSending else { return ClientOutput() }
        own.isSending = isSending
        isOwnChanged = true
        if !isSending { notifications.cancelAll() }
        return settle(at: now)
    }

    /// Sets an encoded ChatIdentity to include in advertisements; empty for none.
    mutating func setChatIdentity(_ chatIdentity: [UInt8], at now: Timestamp) -> ClientOutput {
        guard own.chatIdentity != chatIdentity else { return ClientOutput() }
        own.chatIdentity = chatIdentity
        isOwnChanged = true
        if own.isReceiving { advertising.rowsChanged(at: now) }
        return settle(at: now)
    }

    /// Subscribes to a registrant's advertisements.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        // Before the start, there is nothing to do: the start looks up all watched registrants at once.
        let isNew = directory.watch(registrant)
        guard isStarted else { return }
        if isNew { actions.append(.watch([registrant])) }
        if directory.beginLookUp(of: registrant, isNew: isNew) { actions.append(.lookUp([registrant])) }
    }

    /// Removes all state about a registrant. The subscription to its advertisements ends at the next start.
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

    mutating func setContactServers(_ servers: [PushServer], at now: Timestamp) -> ClientOutput {
        contactServers = servers
        return settle(at: now)
    }

    mutating func setDeviceLimit(_ limit: Int) {
        notifications.deviceLimit = limit
    }

    /// Requests notifications for a message. Sending must be enabled.
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
