import SessionProtocol
import Testing

@Suite struct DevicePlacesTests {
    private let now: Int64 = 1_800_000_000

    @Test func theAccountFindsRoomAndTheOldestDelegatedDeviceMakesIt() {
        let members = (0..<100).map { place($0, delegate($0), signedAt: now - 1_000 + Int64($0)) }
        // Even with an old signature.
        for signedAt in [now, now - 10_000] {
            #expect(DevicePlaces(members).room(for: place(200, .account, signedAt: signedAt)) == .replacing(members[0]))
        }
    }

    @Test func aMemberWithManyDevicesLosesThemToOthers() {
        let many = (0..<99).map { place($0, delegate(1), signedAt: now - 1_000 + Int64($0) * 5) }
        let other = place(100, delegate(2), signedAt: now - 5_000)
        let places = DevicePlaces(many + [other])
        #expect(places.room(for: place(200, delegate(3), signedAt: now - 9_000)) == .replacing(many[0]))
        #expect(places.room(for: place(200, .account, signedAt: now)) == .replacing(many[0]))
        // Its own next device replaces its own.
        #expect(places.room(for: place(200, delegate(1), signedAt: now)) == .replacing(many[0]))
    }

    /// A storage server repeats the account's signature for 99 devices of its own.
    @Test func aRepeatedSignatureIsNoProof() {
        let first = place(0, .account, signedAt: now - 100)
        let repeated = (1..<100).map { place($0, .account, signedAt: now - 100) }
        let places = DevicePlaces([first] + repeated)
        #expect(places.room(for: place(200, .account, signedAt: now - 100)) == .none)
        // The account's next device has another signature. The device for which the repeated one was made keeps its place.
        #expect(places.room(for: place(200, .account, signedAt: now)) == .replacing(repeated[98]))
        #expect(places.room(for: place(200, delegate(1), signedAt: now)) == .replacing(repeated[98]))
    }

    @Test func aDamagedRowIsOlderThanAllOthers() {
        let rows = [Int64.min, -1, 0, 7]
        let devices = rows.map { DevicePlace(name: [], row: $0, signer: .account, signedAt: now, wasDelivered: false) }
        #expect(DevicePlaces(devices).room(for: place(200, delegate(1), signedAt: now)) == .replacing(devices[3]))
        #expect(DevicePlaces(Array(devices.prefix(2))).room(for: place(200, delegate(1), signedAt: now)) == .replacing(devices[1]))
    }

    @Test func aRepeatedSignatureDisplacesNoMember() {
        let members = (0..<98).map { place($0, delegate($0), signedAt: now - 1_000) }
        let own = place(98, .account, signedAt: now - 100)
        let places = DevicePlaces(members + [own, place(99, .account, signedAt: now - 100)])
        #expect(places.room(for: place(200, .account, signedAt: now - 100)) == .none)
    }

    @Test func aDeliveredDeviceKeepsItsPlace() {
        let member = delegate(1)
        let old = (0..<100).map { place($0, member, signedAt: now - 10_000 + 10 * Int64($0), wasDelivered: $0 < 50) }
        #expect(DevicePlaces(old).room(for: place(200, member, signedAt: now)) == .replacing(old[50]))
        let repeated = (0..<100).map { place($0, .account, signedAt: now, wasDelivered: $0 == 99) }
        #expect(DevicePlaces(repeated).room(for: place(200, delegate(1), signedAt: now)) == .replacing(repeated[98]))
    }

    @Test func theOldestOfTheAccountsOwnDevicesMakesRoom() {
        let own = (0..<100).map { place($0, .account, signedAt: now - 10_000 + 10 * Int64($0)) }
        #expect(DevicePlaces(own).room(for: place(200, .account, signedAt: now)) == .replacing(own[0]))
        #expect(DevicePlaces(own).room(for: place(200, .account, signedAt: now - 20_000)) == .none)
        // A delegated key does not displace the account.
        #expect(DevicePlaces(own).room(for: place(200, delegate(1), signedAt: now)) == .none)
    }

    /// Whatever a storage server repeats, the account's devices with signatures of their own keep their places or find room.
    @Test func theAccountSurvivesRepetitionsOfAllItsSignatures() {
        var (places, held): (DevicePlaces, [DevicePlace]) = (DevicePlaces([]), [])
        var row = 0
        func add(_ new: DevicePlace) -> Bool {
            if held.count == 100 {
                guard case .replacing(let loser) = places.room(for: new) else { return false }
                places.remove(loser.name)
                held.removeAll { $0 == loser }
            }
            places.add(new)
            held.append(new)
            return true
        }
        var own: [DevicePlace] = []
        for round in 0..<20 {
            let signedAt = now + 1_000 * Int64(round)
            row += 1
            own.append(place(row, .account, signedAt: signedAt))
            #expect(add(own[round]))
            for _ in 0..<150 {
                row += 1
                _ = add(place(row, .account, signedAt: signedAt))
            }
        }
        #expect(own.allSatisfy { held.contains($0) })
    }

    private func delegate(_ number: Int) -> DevicePlace.Signer { .delegate([UInt8(number)]) }

    private func place(_ row: Int, _ signer: DevicePlace.Signer, signedAt: Int64, wasDelivered: Bool = false) -> DevicePlace {
        DevicePlace(
            name: [UInt8(row >> 8), UInt8(row & 0xFF)], row: Int64(row), signer: signer, signedAt: signedAt, wasDelivered: wasDelivered)
    }
}
