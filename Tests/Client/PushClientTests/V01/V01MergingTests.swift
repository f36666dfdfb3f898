import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// How a version 0.1 client merges a record returned by a server.
@Suite("Version 0.1, client: merging returned records") struct V01MergingTests {
    private let servers = (0..<2).map { _ in newKey() }

    private func record(_ devices: [V01.Device], version: UInt64 = 7, token: AccessToken = V01Account.newToken()) -> V01.Preferences {
        V01.Preferences(devices: devices, version: version, accessToken: token)
    }

    private func preferences(_ bench: V01MachineBench, _ sent: SentRegistration<Version01>?) throws -> V01.Preferences {
        try #require(sent).preferences(of: bench.identity.publicKey)
    }

    /// The next record, after a server returned `returned`.
    private func merged(_ returned: V01.Preferences) throws -> V01.Preferences {
        var bench = V01MachineBench()
        bench.register(with: [servers[0]])
        bench.answer(try #require(bench.publishAll().registrations.first), .versionMismatch, returned)
        return try preferences(bench, bench.publishAll().registrations.first)
    }

    private func installations(_ preferences: V01.Preferences) -> [String] { preferences.devices.map(\.installationID.string) }

    // MARK: Devices

    /// A record with one of these devices would be rejected by every server.
    @Test func devicesThatServersRefuseAreLeftOut() throws {
        let refused = [
            V01Account.device("of-no-type", tokenType: 0), V01Account.device("of-another-type", tokenType: 3),
            V01Account.device("without-token", token: ""), V01Account.device(""),
            V01Account.device(String(repeating: "i", count: InstallationID.maximumByteCount + 1)),
            V01Account.device("tablet", token: "twice"),
        ]
        let longest = String(repeating: "i", count: InstallationID.maximumByteCount)
        let merged = try merged(record([V01Account.device("tablet"), V01Account.device(longest)] + refused))
        #expect(installations(merged) == ["tablet", longest, "own-device"])
        #expect(merged.devices[0].token == DeviceToken("a-device-token"))
    }

    /// After reinstalling the app, the device token is the same.
    @Test func ownDeviceUnderAnotherInstallationIDIsLeftOut() throws {
        let platforms: [(UInt32, [String])] = [(1, ["own-device"]), (2, ["before", "own-device"])]
        for (tokenType, expected) in platforms {
            let merged = try merged(record([V01Account.device("before", token: "device-token", tokenType: tokenType)]))
            #expect(installations(merged) == expected)
        }
    }

    @Test func recordHasAtMost64Devices() throws {
        let merged = try merged(record((0..<100).map { V01Account.device("device-\($0)") }))
        #expect(merged.devices.count == V01.Preferences.deviceLimit && merged.devices.last?.installationID.string == "own-device")
    }

    @Test func devicesThatMakeTheRecordTooLongAreLeftOut() throws {
        let long = V01Account.device("long", allowed: Array(repeating: [UInt8](repeating: 1, count: 1000), count: 1100))
        #expect(installations(try merged(record([long, V01Account.device("tablet")]))) == ["tablet", "own-device"])
        let half = V01Account.device("half", allowed: Array(repeating: [UInt8](repeating: 1, count: 1000), count: 600))
        let other = V01Account.device("other", allowed: half.filters?.allowedKeyList ?? [])
        let merged = try merged(record([half, other, V01Account.device("tablet")]))
        #expect(installations(merged) == ["half", "tablet", "own-device"] && merged.encoded().count < V01.Preferences.byteLimit)
    }

    @Test func endedRecordHasNoDevices() throws {
        var returned = record([V01Account.device("tablet")])
        returned.unregister = true
        #expect(installations(try merged(returned)) == ["own-device"])
    }

    @Test func recordThatIsNotNewerThanTheLastOneIsNotMerged() throws {
        var bench = V01MachineBench()
        bench.register(with: servers)
        let sent = bench.publishAll().registrations
        bench.answer(sent[0], .versionMismatch, record([V01Account.device("tablet")], version: 9))
        bench.answer(sent[1], .versionMismatch, record([V01Account.device("laptop")], version: 8))
        for sent in bench.publishAll().registrations {
            let preferences = try preferences(bench, sent)
            #expect(installations(preferences) == ["tablet", "own-device"] && preferences.version == 10)
        }
    }

    // MARK: The access token

    @Test func returnedTokenIsTakenOverIfItIsAUUID() throws {
        let token = V01Account.newToken()
        #expect(try merged(record([], token: token)).accessToken == token)
        for text in ["", "no uuid"] {
            let kept = try merged(record([], token: AccessToken(text))).accessToken
            #expect(kept.isUUID)
        }
    }

    /// A bench registered with both servers, after a contact lost the right to the token; with the profile since then, and the old token.
    private func revoked() throws -> (bench: V01MachineBench, profile: V01DeviceProfile, old: AccessToken) {
        var profile = V01DeviceProfile.phone
        profile.contacts = [newKey()]
        var bench = V01MachineBench()
        bench.register(profile, with: servers)
        for sent in bench.publishAll().registrations { bench.answer(sent) }
        let old = bench.machine.own.accessToken
        profile.contacts = []
        bench.register(profile, with: servers)
        #expect(bench.machine.own.accessToken != old)
        return (bench, profile, old)
    }

    /// Until then, tokens returned by servers are older; only afterwards may another device have made a newer one.
    @Test func newTokenHoldsUntilEveryServerAcceptedIt() throws {
        var (bench, profile, _) = try revoked()
        let token = bench.machine.own.accessToken
        let sent = bench.publishAll().registrations
        bench.answer(sent[0])
        bench.answer(sent[1], .versionMismatch, record([], version: 20))
        for sent in bench.publishAll().registrations {
            #expect(try preferences(bench, sent).accessToken == token && bench.machine.own.isTokenNew)
            bench.answer(sent)
        }
        #expect(!bench.machine.own.isTokenNew && servers.allSatisfy { bench.status($0) == .registered(version: 21) })
        profile.blockedChats = ["spam"]
        bench.register(profile, with: servers)
        let newest = V01Account.newToken()
        bench.answer(try #require(bench.publishAll().registrations.first), .versionMismatch, record([], version: 30, token: newest))
        #expect(try preferences(bench, bench.publishAll().registrations.first).accessToken == newest)
    }

    /// Lists of allowed keys sealed with the revoked token are not restored either.
    @Test func noServerBringsARevokedTokenBack() throws {
        var (bench, profile, old) = try revoked()
        let token = bench.machine.own.accessToken
        for sent in bench.publishAll().registrations { bench.answer(sent) }
        #expect(!bench.machine.own.isTokenNew)
        bench.restart()
        profile.blockedChats = ["spam"]
        bench.register(profile, with: servers)
        let returned = record([V01Account.device("tablet", allowed: [[1]])], version: 20, token: old)
        bench.answer(try #require(bench.publishAll().registrations.first), .versionMismatch, returned)
        let renewed = try preferences(bench, bench.publishAll().registrations.first)
        #expect(renewed.accessToken == token && installations(renewed) == ["tablet", "own-device"])
        let list = try #require(renewed.devices[0].filters?.allowedKeyList)
        #expect(V01.openToken(list, from: bench.identity.publicKey, by: bench.identity) == token)
    }
}
