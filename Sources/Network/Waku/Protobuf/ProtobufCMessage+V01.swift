package import CPushMessages

// Every message of Protos/push_notifications_v01.proto, in its order.

extension Protobuf__V01__FilterSettings: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__filter_settings__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__filter_settings__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__filter_settings__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__filter_settings__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__filter_settings__pack }
}

extension Protobuf__V01__DeviceToken: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__device_token__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__device_token__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__device_token__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__device_token__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__device_token__pack }
}

extension Protobuf__V01__Preferences: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__preferences__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__preferences__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__preferences__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__preferences__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__preferences__pack }
}

extension Protobuf__V01__Register: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__register__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__register__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__register__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__register__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__register__pack }
}

extension Protobuf__V01__RegistrationResponse: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__registration_response__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__registration_response__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__registration_response__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__registration_response__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__registration_response__pack }
}

extension Protobuf__V01__AdvertisementInfo: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__advertisement_info__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__advertisement_info__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__advertisement_info__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__advertisement_info__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__advertisement_info__pack }
}

extension Protobuf__V01__ContactCodeAdvertisement: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__contact_code_advertisement__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__contact_code_advertisement__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__contact_code_advertisement__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__contact_code_advertisement__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__contact_code_advertisement__pack }
}

extension Protobuf__V01__Query: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__query__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__query__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__query__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__query__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__query__pack }
}

extension Protobuf__V01__QueryInfo: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__query_info__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__query_info__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__query_info__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__query_info__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__query_info__pack }
}

extension Protobuf__V01__QueryResponse: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__query_response__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__query_response__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__query_response__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__query_response__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__query_response__pack }
}

extension Protobuf__V01__PushNotification: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__push_notification__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__push_notification__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__push_notification__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__push_notification__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__push_notification__pack }
}

extension Protobuf__V01__Request: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__request__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__request__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__request__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__request__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__request__pack }
}

extension Protobuf__V01__Acknowledgement: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__v01__acknowledgement__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__v01__acknowledgement__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__v01__acknowledgement__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__v01__acknowledgement__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__v01__acknowledgement__pack }
}
