import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// Rules of advertising the client's own devices.
@Suite struct AdvertisingTests {
    private let servers = (0..<2).map { _ in newKey() }

    private func list(_ count: Int) -> [PushServer] { servers.prefix(count).map { PushServer(key: $0) } }

    /// - Returns: A bench whose servers accepted the registration, and the advertisements since then.
    private func registered(_ count: Int = 1, _ profile: DeviceProfile = .phone) -> (MachineBench, [ContactCodeAdvertisement]) {
        var bench = MachineBench()
        bench.take(bench.machine.register(profile, with: list(count)))
        var advertisements: [ContactCodeAdvertisement] = []
        for sent in bench.publishAll().registrations {
            bench.answer(sent)
            advertisements += bench.publishAll().advertisements
        }
        return (bench, advertisements)
    }

    @Test func advertisesAfterEachAcceptedRegistrationARowForEachServer() throws {
        let (bench, advertisements) = registered(2)
        #expect(advertisements.map(\.pushNotificationInfo.count) == [1, 2])
        let rows = try #require(advertisements.last).pushNotificationInfo
        #expect(Set(rows.map(\.serverPublicKey)) == Set(servers.map(\.compressed)))
        #expect(rows.allSatisfy { $0.publicKey == KeyHash(of: bench.publicKey).bytes && $0.installationID == bench.installationID })
        #expect(rows.allSatisfy { !$0.accessToken.isEmpty && $0.allowedKeyList.isEmpty && $0.version == 1 })
        for (row, server) in zip(rows, servers) {
            #expect(row.grant == ValueCryptography.grant(by: bench.publicKey, for: server, accessToken: row.accessToken))
        }
    }

    @Test func filteredRowHasAListInsteadOfTheToken() throws {
        var profile = DeviceProfile.phone
        profile.contactsOnly = true
        profile.contacts = [newKey()]
        let row = try #require(registered(1, profile).1.last?.pushNotificationInfo.first)
        #expect(row.accessToken.isEmpty && row.allowedKeyList.count == 1)
    }

    @Test func noRowsWhileRegisteringAgain() throws {
        var (bench, _) = registered()
        var changed = DeviceProfile.phone
        changed.blockMentions = true
        bench.take(bench.machine.register(changed, with: list(1)))
        let sent = try #require(bench.publishAll().registrations.first)
        bench.take(bench.machine.registrations.setChatIdentity([1]))
        #expect(bench.publishAll().advertisements.last?.pushNotificationInfo == [])
        bench.answer(sent)
        #expect(bench.publishAll().advertisements.last?.pushNotificationInfo.first?.version == 2)
    }

    @Test func noRowsAfterUnregistering() throws {
        var (bench, _) = registered()
        bench.take(bench.machine.setReceiving(false))
        bench.answer(try #require(bench.publishAll().registrations.first))
        #expect(bench.publishAll().advertisements.map(\.pushNotificationInfo) == [[]])
        bench.pass(.seconds(7 * 24 * 3600))
        #expect(bench.publishAll().advertisements.isEmpty)
    }

    @Test func rowsAreTakenBackAfterAKillBetweenUnregisteringAndAdvertising() throws {
        var (bench, _) = registered()
        bench.take(bench.machine.setReceiving(false))
        bench.answer(try #require(bench.publishAll().registrations.first))
        bench.restart()
        #expect(bench.publishAll().advertisements.map(\.pushNotificationInfo) == [[]])
    }

    @Test func advertisesAtStart() {
        var (bench, _) = registered()
        bench.restart(after: .seconds(60))
        #expect(bench.publishAll().advertisements.map(\.pushNotificationInfo.count) == [1])
    }

    @Test func advertisesEvery24HoursLessUpToOne() throws {
        var (bench, _) = registered()
        var pauses: [Duration] = []
        for _ in 0..<20 {
            let before = bench.now
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
            #expect(bench.publishAll().advertisements.count == 1)
            pauses.append(bench.now.since(before))
        }
        #expect(pauses.allSatisfy { $0 >= .seconds(23 * 3600) && $0 <= .seconds(24 * 3600) } && Set(pauses).count > 1)
    }

    @Test func advertisementThatWasNotPublishedIsTriedAgainWithGrowingPauses() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(.phone, with: list(1)))
        bench.answer(try #require(bench.publishAll().registrations.first))
        var pauses: [Duration] = []
        for _ in 0..<4 {
            let action = try #require(bench.takeActions().last { if case .advertise = $0 { true } else { false } })
            bench.publish(action, isPublished: false)
            let before = bench.now
            bench.pass(try #require(bench.machine.nextWakeUp).since(bench.now))
            pauses.append(bench.now.since(before))
        }
        #expect(zip(pauses.dropFirst(), pauses).allSatisfy { $0 > $1 })
    }

    @Test func chatIdentityIsInEveryAdvertisement() {
        var bench = MachineBench()
        bench.take(bench.machine.registrations.setChatIdentity([7, 7]))
        #expect(bench.publishAll().advertisements.isEmpty)
        bench.take(bench.machine.register(.phone, with: list(2)))
        var all: [ContactCodeAdvertisement] = []
        for sent in bench.publishAll().registrations {
            bench.answer(sent)
            all += bench.publishAll().advertisements
        }
        #expect(all.count == 2 && all.allSatisfy { $0.chatIdentity == [7, 7] })
    }

    // MARK: Paired devices

    private func paired(_ bench: MachineBench, version: UInt64 = 1, at server: PublicKey? = nil) -> PushNotificationQueryInfo {
        let server = server ?? servers[1]
        let token = AccessToken("22222222-2222-4222-8222-222222222222")
        return PushNotificationQueryInfo(
            accessToken: token, installationID: InstallationID("own-tablet"), publicKey: KeyHash(of: bench.publicKey).bytes,
            allowedKeyList: [], grant: ValueCryptography.grant(by: bench.publicKey, for: server, accessToken: token), version: version,
            serverPublicKey: server.compressed)
    }

    private func hear(_ bench: inout MachineBench, _ rows: [PushNotificationQueryInfo], from device: String = "own-tablet") {
        bench.take(
            bench.machine.advertised(by: bench.publicKey, from: InstallationID(device), rows: rows, age: .zero, at: bench.now))
        _ = bench.publishAll()
    }

    private func advertised(_ bench: inout MachineBench) -> [PushNotificationQueryInfo] {
        bench.restart()
        return bench.publishAll().advertisements.last?.pushNotificationInfo ?? []
    }

    @Test func rowsOfPairedDevicesAreMergedFor30Days() {
        var (bench, _) = registered()
        hear(&bench, [paired(bench)])
        #expect(advertised(&bench).map(\.installationID.string) == ["own-device", "own-tablet"])
        bench.now = bench.now + .seconds(30 * 24 * 3600 - 60)
        #expect(advertised(&bench).count == 2)
        bench.now = bench.now + .seconds(60)
        #expect(advertised(&bench).map(\.installationID.string) == ["own-device"])
    }

    /// A device of the account can read the token, and must not publish it.
    @Test func filteredRowOfAPairedDeviceIsAdvertisedAsItIs() {
        var (bench, _) = registered()
        var row = paired(bench)
        let own = ValueCryptography(publicKey: bench.publicKey, sealed: bench.sealed)
        row.allowedKeyList = [own.seal(row.accessToken, for: bench.publicKey)]
        row.accessToken = AccessToken("")
        hear(&bench, [row])
        #expect(advertised(&bench).last == row)
    }

    @Test func pairedDevicesRowsComeFromItsOwnAdvertisement() {
        var (bench, _) = registered()
        hear(&bench, [paired(bench)], from: "own-laptop")
        #expect(advertised(&bench).count == 1)
        hear(&bench, [paired(bench)])
        #expect(advertised(&bench).count == 2)
        // The paired device unregistered.
        bench.now = bench.now + .seconds(1)
        hear(&bench, [])
        #expect(advertised(&bench).count == 1)
    }

    @Test func pairedDeviceAtAnotherServerIsNews() {
        var (bench, _) = registered()
        hear(&bench, [paired(bench)])
        bench.now = bench.now + .seconds(1)
        bench.take(
            bench.machine.advertised(
                by: bench.publicKey, from: InstallationID("own-tablet"), rows: [paired(bench, at: servers[0])], age: .zero, at: bench.now))
        #expect(bench.takeActions().events == [.discovered(bench.publicKey, deviceCount: 1)])
    }

    @Test func ownAdvertisementThatComesBackChangesNothing() {
        var (bench, advertisements) = registered()
        let before = bench.stored
        hear(&bench, advertisements.last?.pushNotificationInfo ?? [], from: "own-device")
        #expect(bench.stored == before)
    }
}
