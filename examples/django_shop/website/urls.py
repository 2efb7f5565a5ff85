"""The pages of the shop."""

from django.urls import path

from shop import views

urlpatterns = [
    path("orders/", views.orders),
    path("orders/<int:number>/", views.order),
]
