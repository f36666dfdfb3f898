import StatusProtocol
import Core
import WakuCrypto

/// Requests of the application.
extension ClientMachine {
    /// Sets the profile and the servers to register with. Sends nothing when nothing changed, unless it is to be sent again.
    mutating func register(_ profile: DeviceProfile, with servers: [PushServer], again: Bool = false, at now: Timestamp) -> ClientOutput {
        let old = own.profile
        // A server with another VAPID key gets the subscription with that one.
        let renamesKey =
            profile.platform == .webPush
            && servers.contains { server in
                own.servers.contains { $0.key == server.key && $0.vapidKey != server.vapidKey }
            }
        own.isReceiving = true
        own.profile = profile
        own.servers = servers.reduce(into: []) { list, server in
            if !list.contains(where: { $0.key == server.key }) { list.append(server) }
        }
        // Contents of earlier releases have no list when there are no contacts.
        let lacksList = profile.contactsOnly && own.content?.allowedKeyList.isEmpty == true
        let revokesToken = lacksList || old.map { profile.revokesToken(of: $0) } ?? false
        let isSame = own.content != nil && !renamesKey && !revokesToken && old.map { profile.isRegisteredAs($0) } ?? false
        if !isSame { own.content = content(for: profile, keepsToken: !revokesToken) }
        isOwnChanged = true
        registrations.reconcile(own, again: again, at: now)
        actions.append(.watch([publicKey]))
        return settle(at: now)
    }

    /// Registers again with a server that answered that it does not have the registration, unless it refused it.
    mutating func lost(by server: PublicKey, at now: Timestamp) -> ClientOutput {
        if case .refused = registrations.servers[server]?.phase { return ClientOutput() }
        registrations.forgetAcceptance(by: server)
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    private func content(for profile: DeviceProfile, keepsToken: Bool) -> RegistrationContent {
        let token = (keepsToken ? own.content?.accessToken : nil) ?? cryptography.makeAccessToken()
        // Servers of the published dialect would give the token to everyone if the list were empty.
        let keys = profile.contacts.isEmpty ? [publicKey] : profile.contacts
        let sorted = keys.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
        return RegistrationContent(
            version: (own.content?.version ?? 0) + 1, accessToken: token,
            allowedKeyList: profile.contactsOnly ? sorted.map { StoredData(cryptography.seal(token, for: $0)) } : [])
    }

    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> ClientOutput {
        guard own.isReceiving != isReceiving else { return ClientOutput() }
        own.isReceiving = isReceiving
        isOwnChanged = true
        registrations.reconcile(own, at: now)
        return settle(at: now)
    }

    /// Queries the servers about a registrant, if that is needed.
    mutating func refresh(_ registrant: PublicKey, at now: Timestamp) -> ClientOutput {
        if isAskable(registrant), needsQuery(about: registrant, at: now) { query(registrant, at: now) }
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

    mutating func setContactServers(_ servers: [PushServer], at now: Timestamp) -> ClientOutput {
        contactServers = servers
        return settle(at: now)
    }
}
